from __future__ import annotations

import pytest

from odradek.broker.security.sasl.oauth.access_token import IllegalToken
from odradek.broker.security.sasl.oauth.jwks import parse_jwks, select
from odradek.broker.security.sasl.oauth.jwt_validator import ClaimRules, JwtValidator
from tests.support.jwt import jwks, other_rsa_key, rsa_jwk, rsa_key, section, signed, unsigned

NOW_S = 1_700_000_000
CLAIMS: dict[str, object] = {"sub": " alice ", "exp": NOW_S + 60, "iat": NOW_S, "scope": ["read"]}
RULES = ClaimRules(30, frozenset(), None, "scope", "sub")
KEYS = parse_jwks(jwks(rsa_jwk(rsa_key(), kid="1")))


def validate(token: str, rules: ClaimRules = RULES) -> tuple[str, int]:
    return JwtValidator(
        rules, lambda key_id, algorithm: select(KEYS, key_id, algorithm), lambda: NOW_S * 1000
    ).validate(token)


def token(**changes: object) -> str:
    claims = {**CLAIMS, **changes}
    return signed({name: value for name, value in claims.items() if value is not ...}, rsa_key(), kid="1")


def refusal(refused: str, rules: ClaimRules = RULES) -> str:
    with pytest.raises(IllegalToken) as error:
        validate(refused, rules)
    return str(error.value)


def test_a_valid_token() -> None:
    assert validate(token()) == ("alice", (NOW_S + 60) * 1000)


def test_a_blank_that_is_not_ascii_belongs_to_the_name() -> None:
    """As for Java: ` alice` with U+00A0 is another user than `alice`."""
    assert validate(token(sub=" \xa0alice"))[0] == "\xa0alice"


def test_unsigned_foreign_and_forged_tokens() -> None:
    header, claims, signature = token().split(".")
    assert "no verification key" in refusal(unsigned(CLAIMS))
    assert "no verification key" in refusal(f"{section({'alg': 'none', 'kid': '1'})}.{claims}.{signature}")
    assert "no verification key" in refusal(f"{section({'alg': 'HS256', 'kid': '1'})}.{claims}.{signature}")
    assert "no verification key" in refusal(signed(CLAIMS, rsa_key(), kid="2"))
    assert "signature is invalid" in refusal(signed(CLAIMS, other_rsa_key(), kid="1"))
    assert "signature is invalid" in refusal(f"{header}.{section({**CLAIMS, 'sub': 'bob'})}.{signature}")
    assert "signature is invalid" in refusal(f"{header}.{claims}.")
    assert "'alg' or 'kid'" in refusal(f"{section({'kid': '1'})}.{claims}.{signature}")
    assert "'alg' or 'kid'" in refusal(signed(CLAIMS, rsa_key(), kid=["1"]))
    assert "critical" in refusal(signed(CLAIMS, rsa_key(), kid="1", crit=["b64"], b64=False))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"exp": ...}, "No Expiration Time"),
        ({"iat": ...}, "No Issued At"),
        ({"exp": NOW_S - 30}, "no longer valid"),
        ({"exp": NOW_S + 5, "iat": NOW_S + 6}, "before the Issued At"),
        ({"exp": NOW_S + 5, "nbf": NOW_S + 6}, "the Not Before"),
        ({"nbf": NOW_S + 31}, "not yet valid"),
        ({"iat": -1}, "non-negative"),
        ({"exp": "9999999999"}, "Could not extract the 'exp' claim"),
        ({"exp": 1e300}, "Could not extract the 'exp' claim"),
        ({"iat": True}, "Could not extract the 'iat' claim"),
        ({"sub": ...}, "sub value must be"),
        ({"sub": "  "}, "sub value must be"),
        ({"sub": "\x00 \x1b"}, "sub value must be"),
        ({"sub": 5}, "sub value must be"),
        ({"scope": ["a", "a"]}, "duplicates"),
        ({"scope": [""]}, "scope value must be"),
        ({"aud": "kafka"}, "no expected audience"),
    ],
)
def test_claims_that_are_refused(changes: dict[str, object], reason: str) -> None:
    assert reason in refusal(token(**changes))


def test_the_last_second_and_the_first() -> None:
    validate(token(exp=NOW_S - 29, iat=NOW_S - 60))
    validate(token(nbf=NOW_S + 30))
    validate(token(scope=...))


def test_audience() -> None:
    rules = RULES._replace(expected_audience=frozenset({"kafka", "k2"}))
    validate(token(aud="kafka"), rules)
    validate(token(aud=["other", "k2"]), rules)
    for audience in (..., "other", [], ["KAFKA"]):
        assert "does not contain an expected one" in refusal(token(aud=audience), rules)
    assert "neither a text nor a list" in refusal(token(aud=[1]), rules)
    assert "neither a text nor a list" in refusal(token(aud={"kafka": 1}), rules)


def test_issuer() -> None:
    rules = RULES._replace(expected_issuer="https://idp")
    validate(token(iss="https://idp"), rules)
    for issuer in (..., "https://idp/", ["https://idp"]):
        assert "Issuer (iss)" in refusal(token(iss=issuer), rules)


def test_other_names_of_claims() -> None:
    rules = RULES._replace(sub_claim_name="user", scope_claim_name="rights")
    assert validate(token(user="bob", rights="x"), rules)[0] == "bob"
