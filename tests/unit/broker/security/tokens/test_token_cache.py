from __future__ import annotations

from odradek.broker.security.tokens.token_cache import DelegationToken, DelegationTokenCache
from odradek.controller.model.delegation_token import Principal, TokenInformation
from odradek.controller.model.scram_credential import ScramCredential

OWNER = Principal("User", "alice")
INFO = TokenInformation("id", OWNER, OWNER, (), issue_ms=1, max_ms=3, expiry_ms=2)
CREDENTIAL = ScramCredential(b"salt", b"stored", b"server", 4096)
TOKEN = DelegationToken(INFO, b"secret", {"SCRAM-SHA-256": CREDENTIAL})


def test_a_token_is_found_by_its_id_and_by_its_hmac_until_it_is_removed() -> None:
    cache = DelegationTokenCache()
    cache.update(TOKEN)
    cache.update(TOKEN._replace(info=INFO._replace(expiry_ms=3)))
    assert cache.token_info("id") == ("User:alice", 3)
    assert cache.scram_credential("SCRAM-SHA-256", "id") == CREDENTIAL
    assert cache.scram_credential("SCRAM-SHA-512", "id") is None
    found = cache.token_for_hmac(b"secret")
    assert found is not None
    assert found is cache.token("id")
    assert found.info.expiry_ms == 3
    cache.remove("id")
    cache.remove("id")
    assert (cache.token_info("id"), cache.token("id"), cache.tokens()) == (None, None, [])
    assert cache.scram_credential("SCRAM-SHA-256", "id") is None
    assert cache.token_for_hmac(b"secret") is None
    assert cache.token_for_hmac(b"other") is None


def test_the_secret_is_not_printed() -> None:
    assert "secret" not in repr(TOKEN)
    assert "stored" not in repr(TOKEN)
