"""Validates tokens without a signature, which anybody can make: for development, and only when allowed by name.

Kafka: OAuthBearerUnsecuredValidatorCallbackHandler, OAuthBearerUnsecuredJws, OAuthBearerValidationUtils,
OAuthBearerScopeUtils.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.broker.security.sasl.oauth.access_token import AccessToken, IllegalToken, decode_object, is_number, split
from odradek.protocol.java_split import java_trim
from odradek.storage.config.config_def import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.broker.security.sasl.oauth.access_token import Claims, Json

_PREFIX: Final = "unsecuredValidator"


class UnsecuredValidator:
    """Implements `access_token.TokenValidator`. `options`: of the JAAS entry. `now_ms`: wall-clock time.

    Raises: ConfigError, if an option is invalid.
    """

    def __init__(self, options: Mapping[str, str], now_ms: Callable[[], int]) -> None:
        def option(name: str, default: str) -> str:
            return java_trim(options.get(_PREFIX + name, "")) or default

        self._now_ms = now_ms
        self._principal_claim_name = option("PrincipalClaimName", "sub")
        self._scope_claim_name = option("ScopeClaimName", "scope")
        self._required_scope = option("RequiredScope", "").split()
        skew = option("AllowableClockSkewMs", "0")
        if not (skew.isascii() and skew.isdigit()):
            raise ConfigError(f"{_PREFIX}AllowableClockSkewMs must be a number of milliseconds, not negative")
        self._skew_ms = int(skew)

    def validate(self, token: str, /) -> AccessToken:
        header_part, claims_part, signature = split(token)
        header, claims = decode_object(header_part), decode_object(claims_part)
        if header.get("alg") != "none":
            raise IllegalToken("Unsecured JWS must have 'none' for an algorithm")
        if signature:
            raise IllegalToken("Unsecured JWS must not contain a digital signature")
        expiry = _number(claims, "exp")
        if expiry is None:
            raise IllegalToken("No expiration time in JWT")
        issued_at = _number(claims, "iat")
        name = claims.get(self._principal_claim_name)
        if not isinstance(name, str) or not java_trim(name):
            raise IllegalToken(f"No principal name in JWT claim: {self._principal_claim_name}")
        self._check_times(issued_at, expiry)
        self._check_scope(_scope(claims.get(self._scope_claim_name)))
        return AccessToken(name, round(expiry * 1000))

    def _check_times(self, issued_at: float | None, expiry: float) -> None:
        now_ms = self._now_ms()
        if issued_at is not None and 1000 * issued_at > now_ms + self._skew_ms:
            raise IllegalToken("The Issued At value was after the indicated time plus allowable clock skew")
        if now_ms - self._skew_ms >= 1000 * expiry:
            raise IllegalToken(
                "The indicated time minus allowable clock skew was on or after the Expiration Time value"
            )
        if issued_at is not None and expiry <= issued_at:
            raise IllegalToken("The Expiration Time time was not after the Issued At time")

    def _check_scope(self, scope: set[str]) -> None:
        for required in self._required_scope:
            if required not in scope:
                text = f"[{', '.join(self._required_scope)}]"
                raise IllegalToken(f"The provided scope was missing a required scope. All of them: {text}", text)


def _number(claims: Claims, name: str) -> float | None:
    value = claims.get(name)
    if value is None:
        return None
    if not is_number(value):
        raise IllegalToken(f"The '{name}' claim was not of type Number")
    return value  # type: ignore[return-value]  # it is a number


def _scope(value: Json) -> set[str]:
    if isinstance(value, str):
        return {java_trim(value)} - {""}
    if value is None:
        return set()
    if isinstance(value, list):
        return {java_trim(str(each)) for each in value} - {""}
    raise IllegalToken("The scope claim is neither a text nor a list")
