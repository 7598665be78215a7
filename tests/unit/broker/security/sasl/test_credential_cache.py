from __future__ import annotations

from odradek.broker.security.sasl.credential_cache import ScramCredentialCache

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
