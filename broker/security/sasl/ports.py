"""The ports of SASL: exchanges on both sides of a connection, what a mechanism is made from, and where credentials are.

A mechanism is a module with two functions:

- `load_server(context: SaslContext) -> MakeSaslServer`: called for each listener when it is configured. Raises:
  ConfigError, if the JAAS entry or a setting is invalid.
- `make_client(context: SaslContext) -> SaslClient`: called for each connection to another broker.

A module is imported when a listener enables its mechanism.

Kafka: SaslServer, SaslClient, AuthenticateCallbackHandler, LoginModule.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Awaitable, Callable, Mapping

    from odradek.controller.model.scram_credential import ScramCredential
    from odradek.storage.config.config_def import ConfigValue
    from odradek.storage.disk.ports import IoPool
    from odradek.timer.clock import Clock


class SaslAuthenticationError(Exception):
    """The authentication is refused. The client gets the message: it must not say whether a user exists."""


class SaslError(Exception):
    """The exchange is invalid. The message is for the log only; the client gets a general one."""


class TransientSaslError(SaslError):
    """The next attempt may succeed: the connection is closed without an answer, so that the client tries again."""


class HandlerFailed(Exception):
    """The class of `sasl.server.callback.handler.class` has raised. The message says where, and has no secret."""


class JaasEntry(NamedTuple):
    """One login module of a JAAS configuration. Its repr hides the options, which contain passwords."""

    login_module: str
    """The name of the Java class."""
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"JaasEntry({self.login_module})"


class SaslServer(Protocol):
    """One exchange of one mechanism on one connection."""

    is_complete: bool
    authorization_id: str
    """The name of the user, when complete."""
    session_expiry_ms: int | None
    """Wall-clock time in ms at which the credential ends; None: no limit."""
    is_token_authenticated: bool
    """The client authenticated with a delegation token."""

    def evaluate_response(self, response: bytes, /) -> bytes | Awaitable[bytes | None]:
        """The next challenge, or the last message of the server; None: it has none. A client that sends bare tokens
        gets no answer then. Raises: SaslAuthenticationError, SaslError.
        """


MakeSaslServer: TypeAlias = "Callable[[], SaslServer]"


class SaslClient(Protocol):
    """One exchange of one mechanism on a connection to another broker."""

    is_complete: bool

    def evaluate_challenge(self, challenge: bytes, /) -> bytes | None:
        """The next response; None: nothing more is sent. The first challenge is empty. May block for long (hashing,
        HTTP): called in a thread of the io pool. Raises: SaslError.
        """


class TokenInfo(NamedTuple):
    """What SCRAM must know of a delegation token."""

    owner: str
    """`User:name`"""
    expiry_ms: int
    """Wall-clock time at which the token expires."""


class TokenCache(Protocol):
    """The delegation tokens of the cluster. Kafka: DelegationTokenCache."""

    def token_info(self, token_id: str, /) -> TokenInfo | None: ...

    def scram_credential(self, mechanism: str, token_id: str, /) -> ScramCredential | None: ...


class ScramCredentials(Protocol):
    """The SCRAM credentials of the cluster's users. Kafka: CredentialCache."""

    def scram_credential(self, mechanism: str, user: str, /) -> ScramCredential | None: ...


def _ignore(close: Callable[[], None]) -> None:
    """A client has no listener that is closed."""


class SaslContext(NamedTuple):
    """What a mechanism is made from."""

    mechanism: str
    jaas_entry: JaasEntry
    """The first entry of `sasl.jaas.config` with the prefixes of the listener and the mechanism."""
    value: Callable[[str], ConfigValue]
    """The typed value of a key: with the prefixes of the listener and the mechanism, else of the listener, else of
    the broker."""
    clock: Clock
    io_pool: IoPool
    random_bytes: Callable[[int], bytes]
    scram_credentials: ScramCredentials
    tokens: TokenCache | None
    """None: no delegation tokens (`delegation.token.secret.key` is not set)."""
    handler_slots: asyncio.Semaphore | None = None
    """Limits the calls in threads of operators' classes and of clients; None: in a command."""
    handler_class: str | None = None
    """`sasl.server.callback.handler.class` with the prefixes of the listener and the mechanism."""
    configs: Mapping[str, str] = MappingProxyType({})
    """The texts of the broker's settings; those with the prefix of the listener also without it."""
    server_host: str = ""
    """The host to which a client connects."""
    when_closed: Callable[[Callable[[], None]], None] = _ignore
    """Takes a function that is called when the listener is closed."""
