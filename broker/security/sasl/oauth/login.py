"""Where a client of OAUTHBEARER has its token from: made by itself without a signature, a file, or a token endpoint.

`sasl.login.callback.handler.class` with the prefix of listener and mechanism decides, by the names of Apache Kafka's
classes. The default makes unsigned tokens, as in Apache Kafka. A token is got anew for each connection.

Kafka: OAuthBearerUnsecuredLoginCallbackHandler, OAuthBearerLoginCallbackHandler, FileTokenRetriever,
HttpAccessTokenRetriever.
"""

from __future__ import annotations

import json
from base64 import b64encode, urlsafe_b64encode
from typing import TYPE_CHECKING, Final
from urllib.parse import quote_plus

from odradek.broker.config.keys.sasl import LOGIN, LOGINS, UNSECURED_LOGIN
from odradek.broker.security.sasl.oauth.client_response import ClientInitialResponse
from odradek.broker.security.sasl.oauth.http import request
from odradek.broker.security.sasl.oauth.urls import allowed_url, file_of
from odradek.broker.security.sasl.ports import SaslError
from odradek.protocol.java_split import java_trim
from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.broker.security.sasl.oauth.access_token import Claims, Json
    from odradek.broker.security.sasl.ports import SaslContext

HANDLER_KEY: Final = "sasl.login.callback.handler.class"
TOKEN_URL_KEY: Final = "sasl.oauthbearer.token.endpoint.url"

_PREFIX: Final = "unsecuredLogin"
_RESERVED: Final = ("iat", "exp")


def make_login(context: SaslContext) -> Callable[[], ClientInitialResponse]:
    """A function that gets the first message; it may block, and raises SaslError. Raises: ConfigError."""
    handler, options = context.value(HANDLER_KEY), context.jaas_entry.options
    if handler in (None, UNSECURED_LOGIN):
        claims = _unsecured_claims(options)
        lifetime = _number(f"{_PREFIX}LifetimeSeconds", options.get(f"{_PREFIX}LifetimeSeconds", "3600"))
        extensions = _extensions(options, f"{_PREFIX}Extension_")

        def unsecured() -> ClientInitialResponse:
            now = context.clock.time_ms() / 1000
            token = f"{_encoded({'alg': 'none'})}.{_encoded({'exp': now + lifetime, 'iat': now, **claims})}."
            return ClientInitialResponse(token, "", extensions)

        return unsecured
    if handler not in LOGINS:
        raise ConfigError(f"{HANDLER_KEY} is a class that is not known: {LOGIN} and {UNSECURED_LOGIN} are")
    retrieve = _retriever(context)
    extensions = _extensions(options, "extension_")
    return lambda: ClientInitialResponse(retrieve(), "", extensions)


def _extensions(options: Mapping[str, str], prefix: str) -> dict[str, str]:
    return {name.removeprefix(prefix): value for name, value in options.items() if name.startswith(prefix)}


def _unsecured_claims(options: Mapping[str, str]) -> Claims:
    claims: Claims = {}
    for option, value in options.items():
        kind, found, name = option.partition("Claim_")
        if not found or not name:
            continue
        if name in _RESERVED:
            raise ConfigError(f"Cannot explicitly set the '{name}' claim")
        if kind == f"{_PREFIX}String":
            claims[name] = value
        elif kind == f"{_PREFIX}Number":
            claims[name] = _number(option, value)
        elif kind == f"{_PREFIX}List":
            elements: list[Json] = [*value[1:].split(value[:1])] if len(value) > 1 else []
            claims[name] = elements
    principal = claims.get(java_trim(options.get(f"{_PREFIX}PrincipalClaimName", "")) or "sub")
    if not isinstance(principal, str) or not java_trim(principal):
        raise ConfigError("the options of the login module have no claim with the name of the user")
    return claims


def _number(option: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ConfigError(f"{option} is not a number") from None


def _encoded(value: Claims) -> str:
    return urlsafe_b64encode(json.dumps(value).encode()).rstrip(b"=").decode()


def _retriever(context: SaslContext) -> Callable[[], str]:
    url, options = allowed_url(context, TOKEN_URL_KEY), context.jaas_entry.options
    if url.startswith("file:"):
        path = file_of(url, TOKEN_URL_KEY)
        return lambda: _got(lambda: java_trim(path.read_text()))
    client_id, secret = options.get("clientId"), options.get("clientSecret")
    if not client_id or not secret:
        raise ConfigError("the login module needs the options clientId and clientSecret")
    scope = java_trim(options.get("scope", ""))
    body = "grant_type=client_credentials" + (f"&scope={quote_plus(scope)}" if scope else "")
    headers = {
        "Accept": "application/json",
        "Authorization": f"Basic {b64encode(f'{client_id}:{secret}'.encode()).decode()}",
        "Cache-Control": "no-cache",
    }

    def retrieve() -> str:
        answer = json.loads(request(url, options, body.encode(), headers))
        return java_trim(str(answer["access_token"]))

    return lambda: _got(retrieve)


def _got(retrieve: Callable[[], str]) -> str:
    try:
        token = retrieve()
    except ConfigError as error:
        raise SaslError(f"the token cannot be got: {error}") from error
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise SaslError(f"the token cannot be got: {type(error).__name__}") from error
    if not token:
        raise SaslError("the token is empty")
    return token
