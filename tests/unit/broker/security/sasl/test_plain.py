from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.security.sasl import plain
from odradek.broker.security.sasl.ports import SaslAuthenticationError, SaslServer
from odradek.storage.config.config_def import ConfigError
from tests.support.in_process.security.sasl_contexts import context

JAAS = f'{plain.LOGIN_MODULE} required username="alice" password="secret" user_alice="secret" user_bob="";'


def server() -> SaslServer:
    return plain.load_server(context("PLAIN", JAAS))()


def test_a_user_with_the_right_password_is_authenticated() -> None:
    one = server()
    client = plain.make_client(context("PLAIN", JAAS))
    token = client.evaluate_challenge(b"")
    assert token == b"\0alice\0secret"
    assert one.evaluate_response(token) == b""
    assert (one.is_complete, one.authorization_id, one.session_expiry_ms) == (True, "alice", None)
    assert client.evaluate_challenge(b"") is None


@pytest.mark.parametrize(
    ("token", "message"),
    [
        (b"", "Invalid SASL/PLAIN response: expected 3 tokens, got 1"),
        (b"alice\0secret", "Invalid SASL/PLAIN response: expected 3 tokens, got 2"),
        (b"\0alice\0secret\0", "Invalid SASL/PLAIN response: expected 3 tokens, got 4"),
        (b"\0\0secret", "Authentication failed: username not specified"),
        (b"\0alice\0", "Authentication failed: password not specified"),
        (b"\0bob\0", "Authentication failed: password not specified"),
        (b"\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (b"\0alice\0secret\xff", "Authentication failed: Invalid username or password"),
        (b"\0nobody\0secret", "Authentication failed: Invalid username or password"),
        (b"bob\0alice\0wrong", "Authentication failed: Invalid username or password"),
        (
            b"bob\0alice\0secret",
            "Authentication failed: Client requested an authorization id that is different from username",
        ),
    ],
)
def test_everything_else_is_refused_with_kafkas_words(token: bytes, message: str) -> None:
    one = server()
    with pytest.raises(SaslAuthenticationError) as error:
        one.evaluate_response(token)
    assert str(error.value) == message
    assert not one.is_complete


def test_an_authorization_id_that_is_the_user_is_accepted() -> None:
    assert server().evaluate_response(b"alice\0alice\0secret") == b""


@given(st.binary())
def test_no_token_is_accepted_by_accident(token: bytes) -> None:
    with pytest.raises(SaslAuthenticationError):
        server().evaluate_response(token)


def test_another_login_module_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"names org\.example\.Ldap, which is not supported"):
        plain.load_server(context("PLAIN", "org.example.Ldap required;"))
