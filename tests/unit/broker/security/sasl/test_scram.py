from __future__ import annotations

import base64
import re

import pytest

from odradek.broker.security.sasl import scram
from odradek.broker.security.sasl.ports import SaslAuthenticationError, SaslError, SaslServer
from odradek.broker.security.sasl.scram import ScramSaslClient
from odradek.broker.security.sasl.scram_messages import ServerFirstMessage
from odradek.broker.tools.admin.security.scram_requests import salted_password
from odradek.controller.model.scram_credential import ScramCredential
from odradek.controller.model.scram_mechanism import SCRAM_MECHANISMS, ScramMechanism
from odradek.storage.config.config_def import Password
from tests.support.in_process.security.sasl_contexts import Credentials, Tokens, context

JAAS = f"{scram.LOGIN_MODULE} required username=alice password=secret;"


def credential(mechanism: ScramMechanism, password: bytes = b"secret", iterations: int = 4096) -> ScramCredential:
    return mechanism.credential(b"salt", mechanism.salted_password(password, b"salt", iterations), iterations)


def server(name: str = "SCRAM-SHA-256", *, iterations: int = 4096) -> SaslServer:
    known = credential(SCRAM_MECHANISMS[name], iterations=iterations)
    return scram.load_server(context(name, JAAS, Credentials(alice=known), Tokens(token=known)))()


def client(user: str = "alice", password: str = "secret", *, uses_token: bool = False) -> ScramSaslClient:
    return ScramSaslClient(ScramMechanism.SCRAM_SHA_256, user, password, "nonce", uses_token=uses_token)


def answer(one: SaslServer, token: bytes | None) -> bytes:
    assert token is not None
    challenge = one.evaluate_response(token)
    assert isinstance(challenge, bytes)
    return challenge


def final_message(one: SaslServer, of: ScramSaslClient) -> bytes:
    message = of.evaluate_challenge(answer(one, of.evaluate_challenge(b"")))
    assert message is not None
    return message


@pytest.mark.parametrize("name", SCRAM_MECHANISMS)
def test_both_sides_authenticate_each_other(name: str) -> None:
    one, other = server(name), scram.make_client(context(name, JAAS))
    challenge = b""
    while (token := other.evaluate_challenge(challenge)) is not None:
        challenge = answer(one, token)
    assert one.is_complete
    assert other.is_complete
    assert (one.authorization_id, one.session_expiry_ms, one.is_token_authenticated) == ("alice", None, False)


def test_the_client_of_the_example_of_rfc_7677() -> None:
    nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    one = ScramSaslClient(ScramMechanism.SCRAM_SHA_256, "user", "pencil", "rOprNGfwEbeRWgbNEkqO")
    assert one.evaluate_challenge(b"") == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    final = one.evaluate_challenge(f"r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode())
    assert final == f"c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=".encode()
    assert one.evaluate_challenge(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=") is None
    assert one.is_complete


def test_a_token_authenticates_its_owner_until_it_expires() -> None:
    one = server()
    answer(one, final_message(one, client("token", uses_token=True)))
    assert one.is_complete
    assert (one.authorization_id, one.session_expiry_ms, one.is_token_authenticated) == ("alice", 5000, True)


@pytest.mark.parametrize(("user", "uses_token"), [("token", False), ("alice", True)])
def test_tokens_and_users_are_not_confused(user: str, uses_token: bool) -> None:
    one = server()
    with pytest.raises(SaslError):
        answer(one, final_message(one, client(user, uses_token=uses_token)))
    assert not one.is_complete


def test_an_unknown_user_looks_like_a_known_one_with_another_password() -> None:
    salts = set()
    for user in ("alice", "nobody", "nobody"):
        one, other = server(), client(user, "wrong")
        first = ServerFirstMessage.parse(answer(one, other.evaluate_challenge(b"")))
        assert first.iterations == 4096
        salts.add(first.salt)
        with pytest.raises(SaslError, match=r"^Invalid client credentials$"):
            answer(one, other.evaluate_challenge(first.to_bytes()))
    assert len(salts) == 2, "the salt of a user stays the same"


def first_message(name: str, user: str, random_byte: int, secrets: dict[str, str]) -> ServerFirstMessage:
    """Of a broker with these secrets, whose random bytes are all the same."""
    values = {key: Password(text) for key, text in secrets.items()}
    one = context(name, JAAS)._replace(value=values.get, random_bytes=lambda count: bytes([random_byte]) * count)
    return ServerFirstMessage.parse(answer(scram.load_server(one)(), f"n,,n={user},r=x".encode()))


@pytest.mark.parametrize("name", SCRAM_MECHANISMS)
def test_the_salt_of_an_unknown_user_has_the_form_of_those_that_tools_store(name: str) -> None:
    _, stored, _ = salted_password(name, "password=x")
    shown = [first_message(name, user, 1, {}).salt for user in ("a", "b", "c", "d")]
    assert len(set(shown)) == 4
    for salt in (stored, *shown):
        assert re.fullmatch(rb"[0-9a-z]{20,26}", salt)


@pytest.mark.parametrize("name", SCRAM_MECHANISMS)
@pytest.mark.parametrize("key", scram.SHARED_SECRETS)
def test_the_salt_of_an_unknown_user_stays_the_same_with_a_secret_of_the_cluster(name: str, key: str) -> None:
    salts = [first_message(name, "nobody", byte, {key: secret}).salt for byte, secret in ((1, "x"), (2, "x"), (2, "y"))]
    assert salts[0] == salts[1], "another broker, or the same after a restart"
    assert salts[1] != salts[2]
    assert first_message(name, "nobody", 1, {}).salt != first_message(name, "nobody", 2, {}).salt, "without a secret"
    others = {first_message(other, "nobody", 1, {key: "x"}).salt for other in SCRAM_MECHANISMS}
    assert len(others) == 2, "as those of a known user"


def test_no_proof_authenticates_an_unknown_user() -> None:
    """The stored key of an unknown user is not known to anybody, but nothing may depend on that."""
    one = server()
    first = answer(one, b"n,,n=nobody,r=x")
    made_up = scram.ScramSaslServer._unknown_user_credential(one, "nobody")  # type: ignore[arg-type]
    without_proof = b"c=biws,r=" + ServerFirstMessage.parse(first).nonce.encode()
    message = b",".join((b"n=nobody,r=x", first, without_proof))
    signature = ScramMechanism.SCRAM_SHA_256.hmac(made_up.stored_key, message)
    with pytest.raises(SaslError, match="Invalid client credentials"):
        answer(one, without_proof + b",p=" + base64.b64encode(signature))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"r=nonce", b"r=other", "Invalid client nonce"),
        (b"r=nonce", b"r=xnonce", "Invalid client nonce"),
        (b",p=", b"0,p=", "Invalid client nonce"),
        (b"c=biws", b"c=eSws", "Invalid channel binding"),
        (b",p=", b",p=AAAA", "Invalid client credentials"),
        (b",p=", b",x=y,p=", "Invalid client credentials"),
    ],
)
def test_a_changed_final_message_is_refused(old: bytes, new: bytes, message: str) -> None:
    one = server()
    final = final_message(one, client())
    assert old in final
    with pytest.raises(SaslError, match=message):
        answer(one, final.replace(old, new, 1))
    assert not one.is_complete


def test_a_replayed_final_message_is_refused() -> None:
    """The nonces of the servers of these tests are equal: another one has another nonce."""
    first, second = server(), server()
    second._random_bytes = lambda count: b"\x07" * count  # type: ignore[attr-defined]
    final = final_message(first, client())
    answer(first, final)
    answer(second, client().evaluate_challenge(b""))
    with pytest.raises(SaslError, match="Invalid client nonce"):
        answer(second, final)


def test_there_is_one_attempt_in_an_exchange() -> None:
    one = server()
    final = final_message(one, client())
    with pytest.raises(SaslError):
        answer(one, b"garbage")
    with pytest.raises(SaslError, match="Unexpected challenge"):
        answer(one, final)


def test_another_authorization_id_is_refused_and_the_own_one_accepted() -> None:
    with pytest.raises(SaslAuthenticationError, match="an authorization id that is different from username"):
        answer(server(), b"n,a=bob,n=alice,r=x")
    assert answer(server(), b"n,a=alice,n=alice,r=x")


def test_too_few_iterations_of_a_stored_credential_are_refused() -> None:
    with pytest.raises(SaslError, match="Iterations 4095"):
        answer(server(iterations=4095), client().evaluate_challenge(b""))


@pytest.mark.parametrize(
    ("challenge", "message"),
    [
        (b"r=other,s=AAAA,i=4096", "Invalid server nonce"),
        (b"r=nonce,s=AAAA,i=4096", "Invalid server nonce"),
        (b"r=nonce1,s=AAAA,i=4095", "Requested iterations 4095"),
        (b"r=nonce1,s=AAAA,i=1000001", "Requested iterations 1000001"),
    ],
)
def test_a_client_refuses_a_suspicious_server(challenge: bytes, message: str) -> None:
    one = client()
    one.evaluate_challenge(b"")
    with pytest.raises(SaslError, match=message):
        one.evaluate_challenge(challenge)


@pytest.mark.parametrize("final", [b"v=AAAA", b"e=other-error"])
def test_a_client_refuses_a_server_that_does_not_know_the_password(final: bytes) -> None:
    one = client()
    one.evaluate_challenge(b"")
    one.evaluate_challenge(b"r=nonce1,s=AAAA,i=4096")
    with pytest.raises(SaslError):
        one.evaluate_challenge(final)
    assert not one.is_complete
