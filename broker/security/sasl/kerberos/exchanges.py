"""GSSAPI as RFC 4752 has it, on both sides: tokens until there is a context, then the choice of a security layer.

    server                                          client
                                     <- tokens ->
    wrap(layers, its buffer)                   ->
                                               <-   wrap(layer, its buffer, authorization id)

The only layer is "none": TLS protects the connection, if anything does. The authorization id that the client asks for
does not count: it is who it has proved to be.

Java: GssKrb5Server, GssKrb5Client. Kafka: SaslServerCallbackHandler.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING, Final, Protocol

from odradek.broker.security.sasl.ports import SaslError, TransientSaslError

if TYPE_CHECKING:
    from collections.abc import Callable

NO_LAYER: Final = 1
SERVER_OFFER: Final = bytes((NO_LAYER,)) + (65536).to_bytes(3, "big")
"""Java's server names the size of its buffer, although RFC 4752 wants 0 if there is no layer."""

CLIENT_CHOICE: Final = bytes((NO_LAYER, 0, 0, 0))
_CHOICE_BYTES: Final = 4


class SecurityContextError(Exception):
    """The library refuses a token or a message, or has no credential. The message has no secret."""

    def __init__(self, message: str, *, is_transient: bool = False) -> None:
        """`is_transient`: the next attempt may succeed."""
        super().__init__(message)
        self.is_transient = is_transient


class SecurityContext(Protocol):
    """What the exchanges need of a Kerberos library, as GSS-API has it (RFC 2743).

    One side of one connection. Each method may read files and ask the KDC: none runs on the event loop. Each raises
    SecurityContextError.
    """

    def step(self, token: bytes, /) -> bytes | None:
        """Take a token of the other side, empty at first on the initiator's side. Returns the token for it, if any."""

    def is_established(self) -> bool: ...

    def initiator_name(self) -> str:
        """The principal of the client, such as `alice@EXAMPLE.COM`, when established."""

    def wrap(self, message: bytes, /) -> bytes:
        """The message with a checksum, not encrypted."""

    def unwrap(self, message: bytes, /) -> bytes:
        """Refuses a message whose checksum is wrong, or that was received before."""


class _Stage(Enum):
    TOKENS = auto()
    OFFER = auto()
    CHOICE = auto()
    COMPLETE = auto()


class AcceptorExchange:
    """The server's side. `make_context` is called with the first token. Both calls may block."""

    def __init__(self, make_context: Callable[[], SecurityContext]) -> None:
        self._make_context = make_context
        self._context: SecurityContext | None = None
        self._stage = _Stage.TOKENS
        self.client_principal = ""
        """When the context is established."""
        self.requested_id = ""
        """The authorization id of the client's last message."""

    @property
    def is_complete(self) -> bool:
        return self._stage is _Stage.COMPLETE

    def evaluate(self, response: bytes) -> bytes | None:
        """The next challenge; None: the exchange is complete, and the last message has no answer. Raises: SaslError."""
        try:
            if self._context is None:
                self._context = self._make_context()
            return self._evaluate(self._context, response)
        except SecurityContextError as error:
            raise _sasl_error(error) from error

    def _evaluate(self, context: SecurityContext, response: bytes) -> bytes | None:
        match self._stage:
            case _Stage.TOKENS:
                return self._accept(context, response)
            case _Stage.OFFER:
                return self._offer(context, response)
            case _Stage.CHOICE:
                self._choose(context, response)
                return None
        raise SaslError("SASL authentication already complete")

    def _accept(self, context: SecurityContext, token: bytes) -> bytes | None:
        answer = context.step(token)
        if context.is_established():
            self._stage = _Stage.OFFER
            self.client_principal = context.initiator_name()
            if answer is None:
                return self._offer(context, b"")
        elif answer is None:
            raise SaslError("the context needs another token, and has none for the client")
        return answer

    def _offer(self, context: SecurityContext, response: bytes) -> bytes:
        if response:
            raise SaslError("Handshake expecting no response data from server")
        self._stage = _Stage.CHOICE
        return context.wrap(SERVER_OFFER)

    def _choose(self, context: SecurityContext, response: bytes) -> None:
        choice = context.unwrap(response)
        if len(choice) < _CHOICE_BYTES:
            raise SaslError(f"the client's choice of a security layer has {len(choice)} bytes")
        if not choice[0] & NO_LAYER:
            raise SaslError(f"Client selected unsupported protection: {choice[0]}")
        self.requested_id = choice[_CHOICE_BYTES:].decode("utf-8", "replace")
        self._stage = _Stage.COMPLETE


class InitiatorExchange:
    """The client's side. Implements `sasl.ports.SaslClient`. `make_context` may ask the KDC."""

    def __init__(self, make_context: Callable[[], SecurityContext]) -> None:
        self._make_context = make_context
        self._context: SecurityContext | None = None
        self._stage = _Stage.TOKENS
        self.is_complete = False

    def evaluate_challenge(self, challenge: bytes, /) -> bytes | None:
        try:
            if self._context is None:
                self._context = self._make_context()
            return self._evaluate(self._context, challenge)
        except SecurityContextError as error:
            raise _sasl_error(error) from error

    def _evaluate(self, context: SecurityContext, challenge: bytes) -> bytes | None:
        match self._stage:
            case _Stage.TOKENS:
                return self._initiate(context, challenge)
            case _Stage.CHOICE:
                return self._choose(context, challenge)
        return None

    def _initiate(self, context: SecurityContext, challenge: bytes) -> bytes:
        token = context.step(challenge)
        if context.is_established():
            self._stage = _Stage.CHOICE
        elif token is None:
            raise SaslError("the context needs another token, and has none for the server")
        return token or b""

    def _choose(self, context: SecurityContext, challenge: bytes) -> bytes:
        offer = context.unwrap(challenge)
        if not offer or not offer[0] & NO_LAYER:
            raise SaslError("No common protection layer between client and server")
        self._stage = _Stage.COMPLETE
        self.is_complete = True
        return context.wrap(CLIENT_CHOICE + context.initiator_name().encode())


def _sasl_error(error: SecurityContextError) -> SaslError:
    kind = TransientSaslError if error.is_transient else SaslError
    return kind(str(error))
