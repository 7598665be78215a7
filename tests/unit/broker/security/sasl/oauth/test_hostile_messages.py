"""Whatever a client sends, a parser of OAUTHBEARER raises its own error alone."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.security.sasl.oauth.access_token import IllegalToken
from odradek.broker.security.sasl.oauth.client_response import ClientInitialResponse
from odradek.broker.security.sasl.oauth.jwks import parse_jwks, select
from odradek.broker.security.sasl.oauth.jwt_validator import ClaimRules, JwtValidator
from odradek.broker.security.sasl.oauth.unsecured_validator import UnsecuredValidator
from odradek.broker.security.sasl.ports import SaslError
from tests.support.jwt import ed_jwk, ed_key, encoded, jwks, section, signed

NOW_MS = 1_700_000_000_000
KEYS = parse_jwks(jwks(ed_jwk()))
SIGNED = JwtValidator(
    ClaimRules(30, frozenset({"k"}), "i", "scope", "sub"),
    lambda key_id, algorithm: select(KEYS, key_id, algorithm),
    lambda: NOW_MS,
).validate
UNSIGNED = UnsecuredValidator({"unsecuredValidatorRequiredScope": "x"}, lambda: NOW_MS).validate

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(), lambda inner: st.lists(inner, max_size=3)
)
CLAIMS = st.dictionaries(st.sampled_from(["sub", "exp", "iat", "nbf", "aud", "iss", "scope", "x"]), JSON)
HEADERS = st.dictionaries(st.sampled_from(["alg", "kid", "crit", "typ"]), JSON | st.sampled_from(["none", "EdDSA"]))


@given(
    st.binary()
    | st.lists(st.sampled_from([b"n,", b"a=x,", b",", b"\x01", b"auth=Bearer t", b"k=v", b"="])).map(b"".join)
)
def test_messages(message: bytes) -> None:
    with contextlib.suppress(SaslError):
        parsed = ClientInitialResponse.parse(message)
        assert ClientInitialResponse.parse(parsed.to_bytes()) == parsed


@pytest.mark.parametrize("validate", [SIGNED, UNSIGNED], ids=["signed", "unsigned"])
@given(header=HEADERS, claims=CLAIMS, rest=st.text(alphabet="aA-_.=+/", max_size=8), data=st.binary(max_size=60))
def test_tokens(
    validate: Callable[[str], object], header: dict[str, object], claims: dict[str, object], rest: str, data: bytes
) -> None:
    for token in (
        f"{section(header)}.{section(claims)}.{rest}",
        f"{section(header)}.{encoded(data)}.{rest}",
        signed(claims, ed_key(), "EdDSA"),
        data.decode("latin-1"),
    ):
        with contextlib.suppress(IllegalToken):
            validate(token)


@given(
    st.binary()
    | st.dictionaries(st.sampled_from(["kty", "n", "e", "crv", "x", "y", "use", "alg", "kid"]), JSON).map(
        lambda key: json.dumps({"keys": [key]}).encode()
    )
)
def test_keys(data: bytes) -> None:
    with contextlib.suppress(ValueError):
        parse_jwks(data)
