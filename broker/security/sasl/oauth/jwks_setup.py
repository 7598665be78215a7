"""Makes the validator of signed tokens from the keys `sasl.oauthbearer.*` of a listener.

`sasl.oauthbearer.jwks.endpoint.url` is a file, which is read once, or an HTTP server (`urls.py`).

Kafka: VerificationKeyResolverFactory, AccessTokenValidatorFactory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from odradek.broker.security.sasl.oauth.http import check_trust_store, request
from odradek.broker.security.sasl.oauth.jwks import JsonWebKey, parse_jwks, select
from odradek.broker.security.sasl.oauth.jwt_validator import ClaimRules, JwtValidator
from odradek.broker.security.sasl.oauth.refreshing_jwks import RefreshingJwks, RefreshTimes
from odradek.broker.security.sasl.oauth.urls import allowed_url, file_of
from odradek.protocol.java_split import java_trim
from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from odradek.broker.security.sasl.ports import SaslContext

JWKS_URL_KEY: Final = "sasl.oauthbearer.jwks.endpoint.url"


def make_validator(context: SaslContext) -> tuple[JwtValidator, Callable[[], Awaitable[None] | None]]:
    """The validator, and what must be over before it can validate. Raises: ConfigError."""
    url = allowed_url(context, JWKS_URL_KEY)
    rules, now_ms = _rules(context), context.clock.time_ms
    if url.startswith("file:"):
        keys = _keys_of_file(url)
        return JwtValidator(rules, lambda key_id, algorithm: select(keys, key_id, algorithm), now_ms), lambda: None
    options = context.jaas_entry.options
    check_trust_store(url, options)
    jwks = RefreshingJwks(
        url, lambda: request(url, options), context.io_pool, context.clock.monotonic_ms, _refresh_times(context)
    )
    jwks.maybe_refresh()
    return JwtValidator(rules, jwks.find_key, now_ms), jwks.wait


def _keys_of_file(url: str) -> list[JsonWebKey]:
    path = file_of(url, JWKS_URL_KEY)
    try:
        return parse_jwks(path.read_bytes())
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"The OAuth configuration option {JWKS_URL_KEY} has a file ({path}) that cannot be used: {error}"
        ) from error


def _rules(context: SaslContext) -> ClaimRules:
    value = context.value
    claims = ("sasl.oauthbearer.scope.claim.name", "sasl.oauthbearer.sub.claim.name")
    names = [java_trim(cast("str", value(name))) for name in claims]
    if not all(names):
        raise ConfigError(f"{' and '.join(claims)} must not be empty")
    return ClaimRules(
        cast("int", value("sasl.oauthbearer.clock.skew.seconds")),
        frozenset(cast("list[str] | None", value("sasl.oauthbearer.expected.audience")) or ()),
        java_trim(cast("str | None", value("sasl.oauthbearer.expected.issuer")) or "") or None,
        *names,
    )


def _refresh_times(context: SaslContext) -> RefreshTimes:
    def number(key: str, least: int) -> int:
        found = cast("int", context.value(key))
        if found < least:
            raise ConfigError(f"The OAuth configuration option {key} value must be at least {least}")
        return found

    return RefreshTimes(
        number("sasl.oauthbearer.jwks.endpoint.refresh.ms", 1),
        number("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", 0),
        number("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", 0),
    )
