from __future__ import annotations

import pytest

from odradek.broker.security.sasl.oauth.access_token import IllegalToken
from odradek.broker.security.sasl.oauth.unsecured_validator import UnsecuredValidator
from odradek.storage.config.config_def import ConfigError
from tests.support.jwt import rsa_key, section, signed, unsigned

NOW_S = 1_700_000_000
CLAIMS: dict[str, object] = {"sub": "alice", "exp": NOW_S + 60.5, "iat": NOW_S}


def validator(**options: str) -> UnsecuredValidator:
    return UnsecuredValidator(
        {f"unsecuredValidator{name}": value for name, value in options.items()}, lambda: NOW_S * 1000
    )


def refusal(token: str, **options: str) -> IllegalToken:
    with pytest.raises(IllegalToken) as refused:
        validator(**options).validate(token)
    return refused.value


def test_a_valid_token() -> None:
    assert validator().validate(unsigned(CLAIMS)) == ("alice", NOW_S * 1000 + 60_500)


def test_other_names_of_claims() -> None:
    claims = {"exp": NOW_S + 1, "user": "bob", "rights": ["read", " write "]}
    options = {"PrincipalClaimName": "user", "ScopeClaimName": "rights", "RequiredScope": " read  write "}
    assert validator(**options).validate(unsigned(claims)).principal_name == "bob"


@pytest.mark.parametrize(
    "token",
    [
        signed(CLAIMS, rsa_key()),
        unsigned(CLAIMS) + "c2ln",
        unsigned(CLAIMS, alg="None"),
        f"{section({})}.{section(CLAIMS)}.",
        "a.b.",
    ],
)
def test_signed_and_malformed_tokens_are_refused(token: str) -> None:
    assert refusal(token).scope is None


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"sub": None}, "No principal name"),
        ({"sub": " "}, "No principal name"),
        ({"sub": ["alice"]}, "No principal name"),
        ({"exp": None}, "No expiration time"),
        ({"exp": "1"}, "The 'exp' claim was not of type Number"),
        ({"exp": 1e300}, "The 'exp' claim was not of type Number"),
        ({"exp": NOW_S}, "on or after the Expiration Time"),
        ({"iat": NOW_S + 1}, "The Issued At value was after"),
        ({"iat": True}, "The 'iat' claim was not of type Number"),
        ({"exp": NOW_S + 1, "iat": NOW_S + 1}, "after the indicated time"),
        ({"scope": 7}, "The scope claim"),
    ],
)
def test_claims_that_are_refused(changes: dict[str, object], reason: str) -> None:
    assert reason in str(refusal(unsigned({**CLAIMS, **changes})))


def test_clocks_may_differ_as_far_as_the_option_says() -> None:
    late = unsigned({**CLAIMS, "iat": NOW_S - 10, "exp": NOW_S - 1})
    early = unsigned({**CLAIMS, "iat": NOW_S + 2})
    for token in (late, early):
        refusal(token, AllowableClockSkewMs="999")
        validator(AllowableClockSkewMs="2000").validate(token)
    assert "was not after" in str(refusal(unsigned({**CLAIMS, "iat": NOW_S, "exp": NOW_S}), AllowableClockSkewMs="5"))


def test_a_missing_scope_names_what_is_required() -> None:
    refused = refusal(unsigned({**CLAIMS, "scope": "read"}), RequiredScope="read write")
    assert refused.scope == "[read, write]"


@pytest.mark.parametrize("skew", ["-1", "x", "1.5", "\u0663"])
def test_an_invalid_option(skew: str) -> None:
    with pytest.raises(ConfigError, match="unsecuredValidatorAllowableClockSkewMs"):
        validator(AllowableClockSkewMs=skew)
