"""PLAIN (RFC 4616): the password is compared with an option `user_NAME` of the listener's JAAS entry.

With `sasl.server.callback.handler.class` the operator's class checks it.

Kafka: PlainSaslServer, PlainServerCallbackHandler, PlainSaslClient, PlainLoginModule.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Final

from odradek.broker.security.sasl.login_options import login_name_and_password, require_module
from odradek.broker.security.sasl.ports import HandlerFailed, SaslAuthenticationError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.broker.security.sasl.callback_handlers import HandlerMethod
    from odradek.broker.security.sasl.ports import MakeSaslServer, SaslClient, SaslContext

LOGIN_MODULE: Final = "org.apache.kafka.common.security.plain.PlainLoginModule"

_TOKENS: Final = 3
_USER_PREFIX: Final = "user_"


def load_server(context: SaslContext) -> MakeSaslServer:
    """Raises: ConfigError."""
    require_module(context, LOGIN_MODULE)
    if context.handler_class is None:
        return partial(PlainSaslServer, partial(_is_password, context.jaas_entry.options))
    from odradek.broker.security.sasl.callback_handlers import PlainCallbackHandler, load_method

    verify: HandlerMethod[bool] = load_method(context, PlainCallbackHandler, "verify")
    return partial(PlainSaslServer, verify)


def make_client(context: SaslContext) -> SaslClient:
    """Raises: ConfigError."""
    require_module(context, LOGIN_MODULE)
    return PlainSaslClient(*login_name_and_password(context.jaas_entry))


class PlainSaslServer:
    """Implements `ports.SaslServer`. `verify(user, password)`: whether it is the password of the user."""

    def __init__(self, verify: Callable[[str, str], bool | Awaitable[bool]]) -> None:
        self._verify = verify
        self.is_complete = False
        self.authorization_id = ""
        self.session_expiry_ms: int | None = None
        self.is_token_authenticated = False

    def evaluate_response(self, response: bytes, /) -> bytes | Awaitable[bytes]:
        tokens = response.decode("utf-8", "replace").split("\0", _TOKENS)
        if len(tokens) != _TOKENS:
            raise SaslAuthenticationError(f"Invalid SASL/PLAIN response: expected 3 tokens, got {len(tokens)}")
        authorization_id, username, password = tokens
        if not username:
            raise SaslAuthenticationError("Authentication failed: username not specified")
        if not password:
            raise SaslAuthenticationError("Authentication failed: password not specified")
        is_password = self._verify(username, password)
        if isinstance(is_password, bool):
            return self._finish(authorization_id, username, is_password=is_password)
        return self._finish_later(authorization_id, username, is_password)

    async def _finish_later(self, authorization_id: str, username: str, verified: Awaitable[bool]) -> bytes:
        try:
            is_password = await verified
        except HandlerFailed as error:
            raise SaslAuthenticationError(
                "Authentication failed: credentials for user could not be verified"
            ) from error
        return self._finish(authorization_id, username, is_password=is_password is True)

    def _finish(self, authorization_id: str, username: str, *, is_password: bool) -> bytes:
        if not is_password:
            raise SaslAuthenticationError("Authentication failed: Invalid username or password")
        if authorization_id not in ("", username):
            raise SaslAuthenticationError(
                "Authentication failed: Client requested an authorization id that is different from username"
            )
        self.authorization_id = username
        self.is_complete = True
        return b""


def _is_password(options: Mapping[str, str], username: str, password: str) -> bool:
    expected = options.get(_USER_PREFIX + username)
    # Hashes are compared, also for an unknown user: the time tells neither a length nor whether the user exists.
    is_equal = hmac.compare_digest(_hash(password), _hash(expected or ""))
    return is_equal and expected is not None


def _hash(password: str) -> bytes:
    return hashlib.sha256(password.encode("utf-8", "replace")).digest()


class PlainSaslClient:
    """Implements `ports.SaslClient`."""

    def __init__(self, username: str, password: str) -> None:
        self._username = username
        self._password = password
        self.is_complete = False

    def evaluate_challenge(self, challenge: bytes, /) -> bytes | None:
        if self.is_complete:
            return None
        self.is_complete = True
        return f"\0{self._username}\0{self._password}".encode()
