from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from odradek.controller.tree.zookeeper_settings import ZooKeeperTls
from odradek.controller.tree.zookeeper_tls import BadTls, tls_context
from tests.support.certificates import Authority
from tests.support.tls_handshake import handshake_in_memory


def test_the_defaults_are_kafkas() -> None:
    context = tls_context(ZooKeeperTls())
    assert (context.minimum_version, context.maximum_version) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_2)
    assert context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert not context.verify_flags & ssl.VerifyFlags.VERIFY_CRL_CHECK_LEAF


def test_what_is_asked_for() -> None:
    context = tls_context(
        ZooKeeperTls(
            protocols=("TLSv1.3", "TLSv1.2"),
            cipher_suites=("TLS_AES_128_GCM_SHA256", "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384"),
            verifies_host_name=False,
            checks_revocation=True,
        )
    )
    assert (context.minimum_version, context.maximum_version) == (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)
    assert not context.check_hostname
    assert context.verify_mode is ssl.CERT_REQUIRED
    assert context.verify_flags & ssl.VerifyFlags.VERIFY_CRL_CHECK_CHAIN
    older = [cipher["name"] for cipher in context.get_ciphers() if not cipher["name"].startswith("TLS_")]
    assert older == ["ECDHE-RSA-AES256-GCM-SHA384"]


@pytest.mark.parametrize(
    ("tls", "reason"),
    [
        (ZooKeeperTls(protocols=("SSLv3",)), "SSLv3 is not one of the protocols"),
        (ZooKeeperTls(cipher_suites=("TLS_NO_WITH_SUCH",)), "none of the cipher suites TLS_NO_WITH_SUCH is known"),
        (ZooKeeperTls(trusted_certificates="/no/such.pem"), "cannot use /no/such.pem: "),
        (ZooKeeperTls(key_and_certificates="/no/key.pem"), "cannot use /no/key.pem: "),
    ],
)
def test_invalid_settings_are_refused_with_the_reason(tls: ZooKeeperTls, reason: str) -> None:
    with pytest.raises(BadTls, match=f"TLS to ZooKeeper: {reason}"):
        tls_context(tls)


def test_a_file_that_is_no_store_is_told(tmp_path: Path) -> None:
    store = tmp_path / "store.pem"
    store.write_text("nothing of the kind")
    for tls in (ZooKeeperTls(trusted_certificates=str(store)), ZooKeeperTls(key_and_certificates=str(store))):
        with pytest.raises(BadTls, match=r"cannot use .*store\.pem"):
            tls_context(tls)


def test_the_stores_are_read_for_each_connection(tmp_path: Path) -> None:
    store = tmp_path / "store.pem"
    tls = ZooKeeperTls(trusted_certificates=str(store))
    for name in ("old", "new"):
        Authority(name).write_pem(store)
        (certificate,) = tls_context(tls).get_ca_certs()
        assert certificate["subject"] == ((("commonName", name),),)


def test_a_trusted_certificate_needs_no_authority(tmp_path: Path) -> None:
    identity = Authority().issue("zookeeper")
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(identity.write_pem(tmp_path / "key.pem"))
    store = tmp_path / "store.pem"
    store.write_text(identity.certificate_pem)
    accepted, _ = handshake_in_memory(server, tls_context(ZooKeeperTls(trusted_certificates=str(store))))
    assert accepted.version() == "TLSv1.2"
    Authority("Other").write_pem(store)
    with pytest.raises(ssl.SSLError, match="certificate verify failed"):
        handshake_in_memory(server, tls_context(ZooKeeperTls(trusted_certificates=str(store))))
