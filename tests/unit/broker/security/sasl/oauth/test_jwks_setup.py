from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.security.sasl.oauth import jwks_setup
from odradek.broker.security.sasl.oauth.access_token import IllegalToken
from odradek.broker.security.sasl.oauth.jwks_setup import JWKS_URL_KEY, make_validator
from odradek.broker.security.sasl.oauth.urls import ALLOWED_URLS_KEY
from odradek.storage.config.config_def import ConfigError
from tests.support.in_process.security.oauth_contexts import NOW_S, oauth_context
from tests.support.jwt import ed_jwk, ed_key, jwks, signed

URL = "http://idp/jwks"
CLAIMS = {"sub": "alice", "exp": NOW_S + 60, "iat": NOW_S}


def test_keys_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    path.write_bytes(jwks(ed_jwk(kid="1")))
    settings = {JWKS_URL_KEY: f"file:{path}", "sasl.oauthbearer.expected.audience": "kafka"}
    validator, wait = make_validator(oauth_context(settings))
    assert wait() is None
    assert validator.validate(signed({**CLAIMS, "aud": "kafka"}, ed_key(), "EdDSA", kid="1")).principal_name == "alice"
    with pytest.raises(IllegalToken):
        validator.validate(signed(CLAIMS, ed_key(), "EdDSA", kid="1"))
    path.write_text("junk")
    with pytest.raises(ConfigError, match="cannot be used"):
        make_validator(oauth_context(settings))
    path.unlink()
    with pytest.raises(ConfigError, match="cannot be used"):
        make_validator(oauth_context(settings))


def test_keys_of_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[object, ...]] = []

    def request(*arguments: object) -> bytes:
        asked.append(arguments)
        return jwks(ed_jwk(kid="1"))

    monkeypatch.setattr(jwks_setup, "request", request)
    validator, wait = make_validator(oauth_context({JWKS_URL_KEY: URL, ALLOWED_URLS_KEY: URL}, {"a": "b"}))
    assert asked == [(URL, {"a": "b"})]
    assert wait() is None
    assert validator.validate(signed(CLAIMS, ed_key(), "EdDSA", kid="1")) == ("alice", (NOW_S + 60) * 1000)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("sasl.oauthbearer.jwks.endpoint.refresh.ms", "0"),
        ("sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", "-1"),
        ("sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", "-1"),
        ("sasl.oauthbearer.scope.claim.name", " "),
        ("sasl.oauthbearer.sub.claim.name", ""),
    ],
)
def test_settings_that_are_refused(key: str, value: str) -> None:
    with pytest.raises(ConfigError, match=key.replace(".", r"\.")):
        make_validator(oauth_context({JWKS_URL_KEY: URL, ALLOWED_URLS_KEY: URL, key: value}))


@pytest.mark.parametrize(
    ("store_type", "message"), [("JKS", r"needs ssl\.truststore\.type=PEM"), ("PEM", "cannot be used")]
)
def test_a_trust_store_that_cannot_be_read_refuses_the_listener(store_type: str, message: str, tmp_path: Path) -> None:
    url = "https://idp/jwks"
    options = {"ssl.truststore.location": str(tmp_path / "absent.pem"), "ssl.truststore.type": store_type}
    with pytest.raises(ConfigError, match=message):
        make_validator(oauth_context({JWKS_URL_KEY: url, ALLOWED_URLS_KEY: url}, options))
