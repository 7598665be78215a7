from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.config.keys.sasl import LOGIN, UNSECURED_LOGIN
from odradek.broker.security.sasl.oauth import login
from odradek.broker.security.sasl.oauth.access_token import decode_object
from odradek.broker.security.sasl.oauth.client_response import ClientInitialResponse
from odradek.broker.security.sasl.oauth.login import HANDLER_KEY, TOKEN_URL_KEY, make_login
from odradek.broker.security.sasl.oauth.unsecured_validator import UnsecuredValidator
from odradek.broker.security.sasl.oauth.urls import ALLOWED_URLS_KEY
from odradek.broker.security.sasl.ports import SaslError
from odradek.storage.config.config_def import ConfigError
from tests.support.in_process.security.oauth_contexts import NOW_S, oauth_context


def message(settings: dict[str, str], options: dict[str, str]) -> ClientInitialResponse:
    return make_login(oauth_context(settings, options))()


@pytest.mark.parametrize("settings", [{}, {HANDLER_KEY: UNSECURED_LOGIN}])
def test_an_unsigned_token(settings: dict[str, str]) -> None:
    options = {
        "unsecuredLoginStringClaim_sub": "alice",
        "unsecuredLoginNumberClaim_n": "1.5",
        "unsecuredLoginListClaim_scope": "|read|write",
        "unsecuredLoginLifetimeSeconds": "60",
        "unsecuredLoginExtension_traceId": "12",
    }
    made = message(settings, options)
    assert made.extensions == {"traceId": "12"}
    assert decode_object(made.token.split(".")[1]) == {
        "exp": NOW_S + 60,
        "iat": NOW_S,
        "sub": "alice",
        "n": 1.5,
        "scope": ["read", "write"],
    }
    assert UnsecuredValidator({}, lambda: NOW_S * 1000).validate(made.token) == ("alice", (NOW_S + 60) * 1000)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"unsecuredLoginStringClaim_sub": " "},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginPrincipalClaimName": "user"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginNumberClaim_exp": "1"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginNumberClaim_n": "x"},
        {"unsecuredLoginStringClaim_sub": "a", "unsecuredLoginLifetimeSeconds": "x"},
    ],
)
def test_options_that_make_no_token(options: dict[str, str]) -> None:
    with pytest.raises(ConfigError):
        make_login(oauth_context({}, options))


def test_a_token_from_a_file_is_read_for_each_connection(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text("one\n")
    get = make_login(oauth_context({HANDLER_KEY: LOGIN, TOKEN_URL_KEY: f"file:{path}"}, {"extension_a": "b"}))
    assert get() == ("one", "", {"a": "b"})
    path.write_text("two")
    assert get().token == "two"
    path.write_text("")
    with pytest.raises(SaslError, match="empty"):
        get()
    path.unlink()
    with pytest.raises(SaslError, match="FileNotFoundError"):
        get()


def test_a_token_from_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [b'{"access_token":" t "}', b"{}", b"junk", b"[]"]
    asked: list[tuple[object, ...]] = []

    def request(*arguments: object) -> bytes:
        asked.append(arguments)
        return answers.pop(0)

    monkeypatch.setattr(login, "request", request)
    url = "https://idp/token"
    settings = {HANDLER_KEY: LOGIN, TOKEN_URL_KEY: url, ALLOWED_URLS_KEY: url}
    options = {"clientId": "id", "clientSecret": "secret", "scope": " a b "}
    get = make_login(oauth_context(settings, options))
    assert get().token == "t"
    ((got_url, _, body, headers),) = asked
    assert (got_url, body) == (url, b"grant_type=client_credentials&scope=a+b")
    assert isinstance(headers, dict)
    assert headers["Authorization"] == "Basic aWQ6c2VjcmV0"
    while answers:
        with pytest.raises(SaslError) as failed:
            get()
        assert "secret" not in str(failed.value)
    with pytest.raises(ConfigError, match="clientId and clientSecret"):
        make_login(oauth_context(settings, {"clientId": "id"}))
    with pytest.raises(ConfigError, match="is not allowed"):
        make_login(oauth_context({**settings, ALLOWED_URLS_KEY: "https://other"}, options))


def test_a_trust_store_that_cannot_be_read_ends_the_login_with_the_reason() -> None:
    url = "https://idp/token"
    settings = {HANDLER_KEY: LOGIN, TOKEN_URL_KEY: url, ALLOWED_URLS_KEY: url}
    options = {"clientId": "id", "clientSecret": "secret", "ssl.truststore.location": "store.jks"}
    with pytest.raises(SaslError, match=r"needs ssl\.truststore\.type=PEM"):
        make_login(oauth_context(settings, options))()
