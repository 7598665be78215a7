from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from pathlib import Path

import pytest

from odradek.broker.config.keys.sasl import UNSECURED_VALIDATOR, VALIDATOR
from odradek.broker.security.sasl.oauth.access_token import AccessToken
from odradek.broker.security.sasl.oauth.jwks_setup import JWKS_URL_KEY
from odradek.broker.security.sasl.oauth.oauthbearer import (
    HANDLER_KEY,
    OAuthBearerSaslServer,
    load_server,
    make_client,
)
from odradek.broker.security.sasl.ports import JaasEntry, SaslAuthenticationError, SaslError, SaslServer
from odradek.storage.config.config_def import ConfigError
from tests.support.async_test import async_test
from tests.support.in_process.security.oauth_contexts import NOW_S, oauth_context
from tests.support.jwt import ed_jwk, ed_key, jwks, signed, unsigned

CLAIMS = {"sub": "alice", "exp": NOW_S + 60, "iat": NOW_S}
UNSECURED = {HANDLER_KEY: UNSECURED_VALIDATOR}


def server(settings: dict[str, str] | None = None, options: dict[str, str] | None = None) -> SaslServer:
    return load_server(oauth_context(UNSECURED if settings is None else settings, options))()


def message(token: str, authorization_id: str = "") -> bytes:
    authzid = f"a={authorization_id}" if authorization_id else ""
    return f"n,{authzid},\x01auth=Bearer {token}\x01traceId=1\x01\x01".encode()


def test_a_token_that_is_valid() -> None:
    one = server()
    assert one.evaluate_response(message(unsigned(CLAIMS), "alice")) == b""
    assert (one.is_complete, one.authorization_id) == (True, "alice")
    assert one.session_expiry_ms == (NOW_S + 60) * 1000
    assert not one.is_token_authenticated


def test_a_refused_token_fails_after_the_acknowledgement(caplog: pytest.LogCaptureFixture) -> None:
    one, token = server(), unsigned({**CLAIMS, "exp": NOW_S - 1})
    assert one.evaluate_response(message(token)) == b'{"status":"invalid_token"}'
    assert not one.is_complete
    with pytest.raises(SaslAuthenticationError, match="invalid_token"):
        one.evaluate_response(b"\x01")
    (record,) = [record for record in caplog.records if "refused" in record.message]
    assert "on or after the Expiration Time" in record.message
    assert token not in caplog.text
    with pytest.raises(SaslError, match="client first message"):
        one.evaluate_response(b"\x01")


def test_a_name_that_cannot_be_encoded_is_refused() -> None:
    one = server()
    assert one.evaluate_response(message(unsigned({**CLAIMS, "sub": "\ud800"}))) == b'{"status":"invalid_token"}'
    assert not one.is_complete


def test_another_token_may_follow_a_refused_one() -> None:
    """As in Apache Kafka: only the acknowledgement ends the exchange."""
    one = server()
    one.evaluate_response(message("a.b."))
    assert one.evaluate_response(message(unsigned(CLAIMS))) == b""
    assert one.is_complete


def test_a_missing_scope_is_named() -> None:
    one = server(options={"unsecuredValidatorRequiredScope": "read"})
    assert one.evaluate_response(message(unsigned(CLAIMS))) == b'{"status":"insufficient_scope", "scope":"[read]"}'


def test_a_client_is_nobody_else() -> None:
    one = server()
    with pytest.raises(SaslAuthenticationError, match=r"authorization id \(bob\) that is different"):
        one.evaluate_response(message(unsigned(CLAIMS), "bob"))
    assert not one.is_complete


def test_signatures_are_checked_with_the_class_that_says_so(tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    path.write_bytes(jwks(ed_jwk()))
    settings = {HANDLER_KEY: VALIDATOR, JWKS_URL_KEY: f"file:{path}"}
    assert server(settings).evaluate_response(message(signed(CLAIMS, ed_key(), "EdDSA"))) == b""
    assert server(settings).evaluate_response(message(unsigned(CLAIMS))) == b'{"status":"invalid_token"}'


def test_unsigned_tokens_must_be_allowed_by_name(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ConfigError, match="takes unsigned tokens, which anybody can make"):
        server({})
    with pytest.raises(ConfigError, match="takes unsigned tokens, which anybody can make"):
        server({HANDLER_KEY: "com.example.Handler"})
    with pytest.raises(ConfigError, match=r"jwks\.endpoint\.url value must be non-null"):
        server({HANDLER_KEY: VALIDATOR})
    server()
    assert "every client can be every user" in caplog.text


def test_another_login_module_is_refused() -> None:
    context = oauth_context(UNSECURED)._replace(jaas_entry=JaasEntry("some.other.Module", {}))
    for make in (load_server, make_client):
        with pytest.raises(ConfigError, match=r"some\.other\.Module, which is not supported"):
            make(context)


class Valid:
    def validate(self, token: str, /) -> AccessToken:
        return AccessToken(token, 5)


@async_test
async def test_a_token_waits_until_it_can_be_validated() -> None:
    keys: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    one = OAuthBearerSaslServer(Valid(), lambda: keys)
    answer = one.evaluate_response(message("t"))
    assert isinstance(answer, Awaitable)
    assert not one.is_complete
    keys.set_result(None)
    assert await answer == b""
    assert one.authorization_id == "t"


def test_client_and_server() -> None:
    client = make_client(oauth_context({}, {"unsecuredLoginStringClaim_sub": "alice"}))
    one = server()
    first = client.evaluate_challenge(b"")
    assert first is not None
    assert one.evaluate_response(first) == b""
    assert client.evaluate_challenge(b"") is None
    assert client.is_complete
    assert one.authorization_id == "alice"


def test_a_client_acknowledges_an_error() -> None:
    client = make_client(oauth_context({}, {"unsecuredLoginStringClaim_sub": "alice"}))
    client.evaluate_challenge(b"")
    assert client.evaluate_challenge(b'{"status":"invalid_token"}') == b"\x01"
    assert not client.is_complete
