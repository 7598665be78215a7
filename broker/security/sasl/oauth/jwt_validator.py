"""Validates signed tokens: signature, times, audience, issuer, and the claims that name the user and the scope.

Kafka: ValidatorAccessTokenValidator, ClaimValidationUtils; jose4j's JwtConsumer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from odradek.broker.security.sasl.oauth.access_token import (
    AccessToken,
    IllegalToken,
    decode_bytes,
    decode_object,
    is_number,
    split,
)
from odradek.protocol.java_split import java_trim

if TYPE_CHECKING:
    from collections.abc import Callable, Set

    from odradek.broker.security.sasl.oauth.access_token import Claims, Json
    from odradek.broker.security.sasl.oauth.jwks import JsonWebKey


class ClaimRules(NamedTuple):
    """The keys `sasl.oauthbearer.*` of these names."""

    clock_skew_seconds: int
    expected_audience: Set[str]
    """Empty: a token must not have an audience."""
    expected_issuer: str | None
    scope_claim_name: str
    sub_claim_name: str


class JwtValidator:
    """Implements `access_token.TokenValidator`. `find_key`: the key for a key id (None: any) and an algorithm; None if
    there is none. `now_ms`: wall-clock time.
    """

    def __init__(
        self, rules: ClaimRules, find_key: Callable[[Json, str], JsonWebKey | None], now_ms: Callable[[], int]
    ) -> None:
        self._rules = rules
        self._find_key = find_key
        self._now_ms = now_ms

    def validate(self, token: str, /) -> AccessToken:
        header_part, claims_part, signature_part = split(token)
        self._check_signature(decode_object(header_part), f"{header_part}.{claims_part}", signature_part)
        claims = decode_object(claims_part)
        expiry = self._check_times(claims)
        self._check_audience(claims.get("aud"))
        rules = self._rules
        if rules.expected_issuer is not None and claims.get("iss") != rules.expected_issuer:
            raise IllegalToken("Issuer (iss) claim is missing or not the expected one")
        _check_scopes(rules.scope_claim_name, claims.get(rules.scope_claim_name))
        name = _text(rules.sub_claim_name, claims.get(rules.sub_claim_name))
        return AccessToken(name, expiry * 1000)

    def _check_signature(self, header: Claims, signed: str, signature_part: str) -> None:
        algorithm, key_id = header.get("alg"), header.get("kid")
        if not isinstance(algorithm, str) or not (key_id is None or isinstance(key_id, str)):
            raise IllegalToken("the header of the JWT has an invalid 'alg' or 'kid'")
        if "crit" in header:
            raise IllegalToken("the header of the JWT has critical extensions, of which none is understood")
        key = self._find_key(key_id, algorithm)
        if key is None:
            raise IllegalToken("there is no verification key for the 'kid' and 'alg' of the JWT")
        key.verify(algorithm, decode_bytes(signature_part), signed.encode())

    def _check_times(self, claims: Claims) -> int:
        """The expiry in seconds."""
        now, skew = self._now_ms() // 1000, self._rules.clock_skew_seconds
        expiry, issued_at, not_before = (_seconds(claims, name) for name in ("exp", "iat", "nbf"))
        if expiry is None:
            raise IllegalToken("No Expiration Time (exp) claim present")
        if issued_at is None:
            raise IllegalToken("No Issued At (iat) claim present")
        if now - skew >= expiry:
            raise IllegalToken("The JWT is no longer valid")
        if expiry < issued_at or (not_before is not None and expiry < not_before):
            raise IllegalToken("The Expiration Time (exp) is before the Issued At (iat) or the Not Before (nbf) time")
        if not_before is not None and now + skew < not_before:
            raise IllegalToken("The JWT is not yet valid")
        if expiry < 0 or issued_at < 0:
            raise IllegalToken("exp and iat must be non-negative")
        return expiry

    def _check_audience(self, value: Json) -> None:
        audience = [value] if isinstance(value, str) else value
        if audience is not None and not (isinstance(audience, list) and all(isinstance(one, str) for one in audience)):
            raise IllegalToken("Audience (aud) claim is neither a text nor a list of texts")
        expected = self._rules.expected_audience
        if not expected and audience is not None:
            raise IllegalToken(
                "Audience (aud) claim present in the JWT but no expected audience: sasl.oauthbearer.expected.audience"
            )
        if expected and expected.isdisjoint(str(one) for one in audience or ()):
            raise IllegalToken("Audience (aud) claim is missing or does not contain an expected one")


def _seconds(claims: Claims, name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if not is_number(value):
        raise IllegalToken(f"Could not extract the '{name}' claim from the access token")
    return int(value)  # type: ignore[arg-type]


def _check_scopes(name: str, value: Json) -> None:
    values = [value] if isinstance(value, str) else value if isinstance(value, list) else []
    scopes = [_text(name, each) for each in values]
    if len(set(scopes)) != len(scopes):
        raise IllegalToken(f"{name} value must not contain duplicates")


def _text(name: str, value: Json) -> str:
    if not isinstance(value, str) or not java_trim(value):
        raise IllegalToken(f"{name} value must be a text that is not empty")
    return java_trim(value)
