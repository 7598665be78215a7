"""The mechanism OAUTHBEARER: the server's exchange, and what it is made from.

Which tokens are valid is decided by `sasl.server.callback.handler.class` with the prefix of listener and mechanism. Two
classes of Apache Kafka are known by their names: one checks signatures, the other takes unsigned tokens. Apache Kafka
takes unsigned tokens if no class is set; here one of both must be named.

A refused token is answered with a JSON text; when the client has acknowledged it with a byte 0x01, the authentication
fails (RFC 7628, section 3.2.3).

Kafka: OAuthBearerSaslServer, OAuthBearerValidatorCallbackHandler, VerificationKeyResolverFactory,
AccessTokenValidatorFactory, ConfigurationUtils.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from odradek.broker.config.keys.sasl import UNSECURED_VALIDATOR, VALIDATOR, VALIDATORS
from odradek.broker.security.sasl.login_options import require_module
from odradek.broker.security.sasl.oauth.access_token import IllegalToken
from odradek.broker.security.sasl.oauth.client_response import ClientInitialResponse
from odradek.broker.security.sasl.ports import SaslAuthenticationError
from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.broker.security.sasl.oauth.access_token import TokenValidator
    from odradek.broker.security.sasl.ports import MakeSaslServer, SaslClient, SaslContext

logger = logging.getLogger(__name__)

LOGIN_MODULE: Final = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"

HANDLER_KEY: Final = "sasl.server.callback.handler.class"

_ACKNOWLEDGEMENT: Final = b"\x01"


def load_server(context: SaslContext) -> MakeSaslServer:
    """Raises: ConfigError."""
    require_module(context, LOGIN_MODULE)
    handler = context.value(HANDLER_KEY)
    if handler == UNSECURED_VALIDATOR:
        from odradek.broker.security.sasl.oauth.unsecured_validator import UnsecuredValidator

        logger.warning("OAUTHBEARER takes unsigned tokens, as %s demands: every client can be every user", HANDLER_KEY)
        unsecured = UnsecuredValidator(context.jaas_entry.options, context.clock.time_ms)
        return lambda: OAuthBearerSaslServer(unsecured, _nothing)
    if handler not in VALIDATORS:
        raise ConfigError(
            f"OAUTHBEARER needs listener.name.<listener>.oauthbearer.{HANDLER_KEY}: {VALIDATOR} checks the signatures "
            f"of tokens, {UNSECURED_VALIDATOR} takes unsigned tokens, which anybody can make"
        )
    try:
        from odradek.broker.security.sasl.oauth.jwks_setup import make_validator
    except ImportError as error:
        raise ConfigError("OAUTHBEARER needs the package cryptography: pip install 'odradek[oauth]'") from error
    validator, wait = make_validator(context)
    return lambda: OAuthBearerSaslServer(validator, wait)


def make_client(context: SaslContext) -> SaslClient:
    """Raises: ConfigError."""
    from odradek.broker.security.sasl.oauth.login import make_login

    require_module(context, LOGIN_MODULE)
    return OAuthBearerSaslClient(make_login(context))


def _nothing() -> None:
    return None


def _check_name(name: str) -> None:
    """Refuse a name that has no encoding: JSON can write half of a surrogate pair. Raises: IllegalToken."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise IllegalToken("the name of the principal is no Unicode text") from None


class OAuthBearerSaslServer:
    """Implements `ports.SaslServer`. `wait`: what must be over before a token can be validated."""

    def __init__(self, validator: TokenValidator, wait: Callable[[], Awaitable[None] | None]) -> None:
        self._validator = validator
        self._wait = wait
        self._error: str | None = None
        self.is_complete = False
        self.authorization_id = ""
        self.session_expiry_ms: int | None = None
        self.is_token_authenticated = False

    def evaluate_response(self, response: bytes, /) -> bytes | Awaitable[bytes]:
        error, self._error = self._error, None
        if error is not None and response == _ACKNOWLEDGEMENT:
            raise SaslAuthenticationError(error)
        client = ClientInitialResponse.parse(response)
        waiting = self._wait()
        return self._process(client) if waiting is None else self._process_later(client, waiting)

    async def _process_later(self, client: ClientInitialResponse, waiting: Awaitable[None]) -> bytes:
        await waiting
        return self._process(client)

    def _process(self, client: ClientInitialResponse) -> bytes:
        try:
            token = self._validator.validate(client.token)
            _check_name(token.principal_name)
        except IllegalToken as error:
            logger.warning("The OAUTHBEARER token of a client is refused: %s", error)
            status = "invalid_token" if error.scope is None else "insufficient_scope"
            scope = "" if error.scope is None else f', "scope":"{error.scope}"'
            self._error = f'{{"status":"{status}"{scope}}}'
            return self._error.encode()
        if client.authorization_id not in ("", token.principal_name):
            raise SaslAuthenticationError(
                f"Authentication failed: Client requested an authorization id ({client.authorization_id}) that is "
                f"different from the token's principal name ({token.principal_name})"
            )
        self.is_complete = True
        self.authorization_id = token.principal_name
        self.session_expiry_ms = token.expiry_ms
        return b""


class OAuthBearerSaslClient:
    """Implements `ports.SaslClient`. `login` gets the message with the token, and may block. Kafka:
    OAuthBearerSaslClient.
    """

    def __init__(self, login: Callable[[], ClientInitialResponse]) -> None:
        self._login = login
        self._has_sent_token = False
        self.is_complete = False

    def evaluate_challenge(self, challenge: bytes, /) -> bytes | None:
        if not self._has_sent_token:
            self._has_sent_token = True
            return self._login().to_bytes()
        if challenge:
            return _ACKNOWLEDGEMENT  # the server refuses the token, and says so again in its answer to this
        self.is_complete = True
        return None
