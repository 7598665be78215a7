"""Security contexts of Kerberos without Kerberos, and what stands in for the module that imports its library."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from odradek.broker.security.sasl.kerberos.exchanges import SecurityContext, SecurityContextError
from odradek.broker.security.sasl.kerberos.krb5_login import Krb5Login

_SEAL: Final = b"sealed:"


def sealed(message: bytes) -> bytes:
    return _SEAL + message


class ScriptedContext:
    """Implements `SecurityContext`: answers with some tokens, with the last of which it is established."""

    def __init__(
        self, tokens: Sequence[bytes | None], *, refusal: str = "", is_transient: bool = False, is_client: bool = False
    ) -> None:
        self._tokens = list(tokens)
        self._refusal = refusal
        self._is_transient = is_transient
        self._expects_token = not is_client

    def step(self, token: bytes, /) -> bytes | None:
        if self._refusal:
            raise SecurityContextError(self._refusal, is_transient=self._is_transient)
        assert bool(token) is self._expects_token, "the other side's token"
        self._expects_token = True
        return self._tokens.pop(0)

    def is_established(self) -> bool:
        return not self._tokens

    def initiator_name(self) -> str:
        return "alice@EXAMPLE.COM"

    def wrap(self, message: bytes, /) -> bytes:
        return sealed(message)

    def unwrap(self, message: bytes, /) -> bytes:
        if not message.startswith(_SEAL):
            raise SecurityContextError("bad checksum")
        return message.removeprefix(_SEAL)


class ScriptedLibrary:
    """Stands in for the module `security_contexts`."""

    def __init__(self, context: SecurityContext) -> None:
        self.context = context
        self.asked: list[tuple[Krb5Login, str]] = []

    def load_acceptor(self, login: Krb5Login) -> Callable[[], SecurityContext]:
        self.asked.append((login, ""))
        return lambda: self.context

    def make_initiator(self, login: Krb5Login, host: str) -> SecurityContext:
        self.asked.append((login, host))
        return self.context
