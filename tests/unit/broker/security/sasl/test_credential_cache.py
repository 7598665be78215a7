from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from functools import partial

import pytest

from odradek.broker.security.sasl import plain
from odradek.broker.security.sasl.credential_cache import ScramCredentialCache
from odradek.broker.security.sasl.ports import SaslAuthenticationError, SaslError, SaslServer
from odradek.broker.security.sasl.scram import NONCE_BYTES, ScramSaslServer
from odradek.controller.model.scram_mechanism import ScramMechanism
from tests.support.call_count import counted_calls
from tests.support.in_process.security.sasl_contexts import context

TEXT = "salt=YWJj,stored_key=ZGVm,server_key=Z2hpag==,iterations=4096"


def test_credentials_follow_the_configs_of_users() -> None:
    cache = ScramCredentialCache()
    cache.config_changed("al%2Fice", {"SCRAM-SHA-256": TEXT, "producer_byte_rate": "1"})
    credential = cache.scram_credential("SCRAM-SHA-256", "al/ice")
    assert credential is not None
    assert credential.iterations == 4096
    assert cache.scram_credential("SCRAM-SHA-512", "al/ice") is None
    assert cache.scram_credential("SCRAM-SHA-256", "nobody") is None
    cache.config_changed("al%2Fice", {"producer_byte_rate": "1"})
    assert cache.scram_credential("SCRAM-SHA-256", "al/ice") is None


def test_only_entities_that_are_users_have_credentials() -> None:
    cache = ScramCredentialCache()
    cache.config_changed("alice/clients/app", {"SCRAM-SHA-256": TEXT})
    cache.config_changed("<default>", {"SCRAM-SHA-256": TEXT})
    assert cache.scram_credential("SCRAM-SHA-256", "alice") is None
    assert cache.scram_credential("SCRAM-SHA-256", "<default>") is None


def test_an_invalid_credential_is_none() -> None:
    cache = ScramCredentialCache()
    cache.config_changed("alice", {"SCRAM-SHA-256": "salt=x"})
    assert cache.scram_credential("SCRAM-SHA-256", "alice") is None


def calls(work: Callable[[], object]) -> int:
    with counted_calls() as count:
        work()
    return count.calls


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_failed_login_takes_as_many_steps_for_an_unknown_user(mechanism: str) -> None:
    cache = ScramCredentialCache()
    text = ScramMechanism.SCRAM_SHA_256.credential(b"s" * 32, b"salted", 4096).to_text()
    cache.config_changed("known", {"SCRAM-SHA-256": text})

    find = partial(cache.scram_credential, "SCRAM-SHA-256")

    def login(user: str) -> None:
        server: SaslServer
        if mechanism == "PLAIN":
            server = plain.load_server(context("PLAIN", f'{plain.LOGIN_MODULE} required user_known="secret";'))()
            messages = [f"\0{user}\0wrong"]
        else:
            server = ScramSaslServer(ScramMechanism.SCRAM_SHA_256, find, None, b"secret", bytes)
            proof = b64encode(bytes(32)).decode()
            messages = [f"n,,n={user},r=nonce", f"c=biws,r=nonce{bytes(NONCE_BYTES).hex()},p={proof}"]
        with pytest.raises((SaslAuthenticationError, SaslError)):  # noqa: PT012 - the last message is refused
            for message in messages:
                assert isinstance(server.evaluate_response(message.encode()), bytes)

    login("known")  # what is imported or compiled once
    login("other")
    assert calls(lambda: login("known")) == calls(lambda: login("other"))
