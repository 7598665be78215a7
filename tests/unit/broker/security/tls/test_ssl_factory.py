from __future__ import annotations

import os
import ssl
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization.pkcs12 import serialize_key_and_certificates

from odradek.broker.security.tls import ssl_factory
from odradek.broker.security.tls.der import DerError
from odradek.broker.security.tls.settings import TlsSettings
from odradek.broker.security.tls.ssl_factory import SslFactory
from odradek.storage.config.config_def import ConfigError
from tests.support.certificates import PASSWORD, Authority, Identity, one_line, store_encryption
from tests.support.tls_handshake import handshake_in_memory

AUTHORITY = Authority()
OTHER = Authority("Other CA")
BROKER = AUTHORITY.issue("broker", organization="Org")
CLIENT = AUTHORITY.issue("client", hosts=())

CERTIFICATE_REQUEST = 13
SHA_1, SHA_256, RSA = 2, 4, 1


def texts(identity: Identity | None = BROKER, trusted: Authority | None = AUTHORITY, **more: str) -> dict[str, str]:
    settings = {name.replace("_", "."): text for name, text in more.items()}
    if identity is not None:
        settings |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": one_line(identity.chain_pem),
            "ssl.keystore.key": one_line(identity.key_pem()),
        }
    if trusted is not None:
        settings |= {"ssl.truststore.type": "PEM", "ssl.truststore.certificates": one_line(trusted.pem)}
    return settings


def server(**more: str) -> SslFactory:
    return SslFactory(TlsSettings.of_client(texts(**more)), is_server=True)


def client(identity: Identity | None = None, trusted: Authority | None = AUTHORITY, **more: str) -> SslFactory:
    return SslFactory(TlsSettings.of_client(texts(identity, trusted, **more)), is_server=False)


def handshake(server: SslFactory, client: SslFactory, host: str = "localhost") -> tuple[ssl.SSLObject, ssl.SSLObject]:
    """Both ends after a handshake in memory. Raises: SSLError."""
    return handshake_in_memory(server.server_context, client.client_context, host)


def test_a_client_is_known_by_its_certificate() -> None:
    accepted, connected = handshake(server(ssl_client_auth="required"), client(CLIENT))
    assert accepted.version() == connected.version() == "TLSv1.3"
    assert accepted.getpeercert(True) == ssl.PEM_cert_to_DER_cert(CLIENT.certificate_pem)


@pytest.mark.parametrize("auth", ["none", "requested"])
def test_a_client_without_certificate(auth: str) -> None:
    accepted, _ = handshake(server(ssl_client_auth=auth), client())
    assert accepted.getpeercert(True) is None


@pytest.mark.parametrize(
    ("auth", "identity", "reason"),
    [
        ("required", None, "peer did not return a certificate"),
        ("required", OTHER.issue("client"), "certificate verify failed"),
        ("requested", OTHER.issue("client"), "certificate verify failed"),
        ("required", AUTHORITY.issue("client", days=-1, began_days_ago=2), "certificate has expired"),
    ],
)
def test_clients_that_are_refused(auth: str, identity: Identity | None, reason: str) -> None:
    with pytest.raises(ssl.SSLError, match=reason):
        handshake(server(ssl_client_auth=auth), client(identity))


def requested_signature_algorithms(factory: SslFactory) -> set[tuple[int, int]]:
    """Hash and signature in the CertificateRequest of TLS 1.2, which is not encrypted (RFC 5246, section 7.4.4)."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    end = factory.server_context.wrap_bio(to_server, to_client, server_side=True)
    hello = ssl.MemoryBIO()
    context = client(ssl_enabled_protocols="TLSv1.2", ssl_protocol="TLSv1.2").client_context
    with pytest.raises(ssl.SSLWantReadError):
        context.wrap_bio(ssl.MemoryBIO(), hello, server_hostname="localhost").do_handshake()
    to_server.write(hello.read())
    with pytest.raises(ssl.SSLWantReadError):
        end.do_handshake()
    records, messages = to_client.read(), b""
    while records:
        size = int.from_bytes(records[3:5], "big")
        messages, records = messages + records[5 : 5 + size], records[5 + size :]
    while messages[0] != CERTIFICATE_REQUEST:
        messages = messages[4 + int.from_bytes(messages[1:4], "big") :]
    types = messages[4]
    size = int.from_bytes(messages[5 + types : 7 + types], "big")
    pairs = messages[7 + types : 7 + types + size]
    return set(zip(pairs[::2], pairs[1::2], strict=True))


def test_clients_are_not_asked_for_a_certificate_that_is_signed_with_sha_1() -> None:
    asked = requested_signature_algorithms(server(ssl_client_auth="required"))
    assert (SHA_256, RSA) in asked
    assert not [pair for pair in asked if pair[0] == SHA_1]


def test_a_client_checks_the_name_of_the_server() -> None:
    handshake(server(), client(), "127.0.0.1")
    with pytest.raises(ssl.SSLCertVerificationError, match=r"not valid for 'other\.example'"):
        handshake(server(), client(), "other.example")
    handshake(server(), client(ssl_endpoint_identification_algorithm=""), "other.example")
    with pytest.raises(ssl.SSLCertVerificationError, match="certificate verify failed"):
        handshake(server(), client(trusted=OTHER))


def test_each_certificate_of_a_trust_store_is_an_anchor() -> None:
    """As in Java: also one that another certificate has signed."""
    settings = texts(None, None) | {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": one_line(BROKER.certificate_pem),
    }
    handshake(server(), SslFactory(TlsSettings.of_client(settings), is_server=False))


def test_a_key_store_as_a_trust_store_trusts_the_certificate_of_the_key_and_not_its_authority(tmp_path: Path) -> None:
    factory = trusting(BROKER.write_pkcs12(tmp_path / "broker.p12"))
    handshake(factory, client(BROKER))
    with pytest.raises(ssl.SSLError, match="certificate verify failed"):
        handshake(factory, client(CLIENT))


def test_certificates_that_no_one_has_marked_as_trusted_let_no_one_in(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """As in Java, where such a trust store is empty."""
    path = tmp_path / "trust.p12"
    certificates = [AUTHORITY.certificate]
    path.write_bytes(serialize_key_and_certificates(None, None, None, certificates, store_encryption()))
    factory = trusting(path)
    assert f"The SSL truststore {path} has no trusted certificate" in caplog.text
    with pytest.raises(ssl.SSLError, match="certificate verify failed"):
        handshake(factory, client(CLIENT))
    handshake(trusting(path, "requested"), client())


def test_an_authority_that_has_expired_is_not_trusted() -> None:
    expired = Authority("Expired CA", days=-1, began_days_ago=2)
    factory = SslFactory(TlsSettings.of_client(texts(expired.issue("broker"), None)), is_server=True)
    with pytest.raises(ssl.SSLCertVerificationError, match="certificate has expired"):
        handshake(factory, client(trusted=expired))


def trusting(path: Path, client_auth: str = "required") -> SslFactory:
    """A server with this trust store, which is PKCS12."""
    store = {
        "ssl.truststore.type": "PKCS12",
        "ssl.truststore.location": str(path),
        "ssl.truststore.password": PASSWORD,
    }
    settings = texts(trusted=None, ssl_client_auth=client_auth) | store
    return SslFactory(TlsSettings.of_client(settings), is_server=True)


def test_protocols_and_ciphers() -> None:
    suite = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"
    accepted, _ = handshake(server(ssl_cipher_suites=suite), client())
    assert accepted.version() == "TLSv1.2"
    cipher = accepted.cipher()
    assert cipher is not None
    assert cipher[0] == "ECDHE-ECDSA-AES128-GCM-SHA256"
    with pytest.raises(ssl.SSLError):
        handshake(server(ssl_enabled_protocols="TLSv1.3"), client(ssl_enabled_protocols="TLSv1.2"))
    with pytest.raises(ConfigError, match="the TLS library knows none of them"):
        server(ssl_cipher_suites="TLS_NO_WITH_SUCH")


def test_an_encrypted_key() -> None:
    encrypted = one_line(BROKER.key_pem("key-secret"))
    SslFactory(
        TlsSettings.of_client(texts() | {"ssl.keystore.key": encrypted, "ssl.key.password": "key-secret"}),
        is_server=True,
    )
    for wrong in ({"ssl.key.password": "canary"}, {}):
        with pytest.raises(ConfigError, match="The private key of KeyStore") as error:
            SslFactory(TlsSettings.of_client(texts() | {"ssl.keystore.key": encrypted} | wrong), is_server=True)
        assert "canary" not in str(error.value)


def test_the_key_of_another_certificate_is_refused() -> None:
    with pytest.raises(ConfigError, match="cannot be used with its certificate"):
        SslFactory(TlsSettings.of_client(texts() | {"ssl.keystore.key": one_line(CLIENT.key_pem())}), is_server=True)


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"ssl\.endpoint\.identification\.algorithm: either https or empty"):
        client(ssl_endpoint_identification_algorithm="LDAP")


def test_a_listener_between_brokers_has_to_trust_its_own_certificate() -> None:
    settings = TlsSettings.of_client(texts(trusted=OTHER))
    SslFactory(settings, is_server=True)
    with pytest.raises(ConfigError, match="can't connect to a server SSLEngine created with those settings"):
        SslFactory(settings, is_server=True, keystore_verifiable_using_truststore=True)
    SslFactory(TlsSettings.of_client(texts()), is_server=True, keystore_verifiable_using_truststore=True)


def replaced(old: dict[str, str], new: dict[str, str], *, between_brokers: bool = False) -> SslFactory:
    factory = SslFactory(
        TlsSettings.of_client(old), is_server=True, keystore_verifiable_using_truststore=between_brokers
    )
    return factory.reconfigured(TlsSettings.of_client(new))


def test_a_certificate_is_replaced_by_one_of_the_same_names() -> None:
    renewed = AUTHORITY.issue("Broker", organization="ORG", hosts=("new.example", "localhost", "127.0.0.1"))
    factory = replaced(texts(), texts(renewed), between_brokers=True)
    _, connected = handshake(factory, client(), "new.example")
    assert connected.getpeercert(True) == ssl.PEM_cert_to_DER_cert(renewed.certificate_pem)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (texts(), texts(AUTHORITY.issue("other", organization="Org")), "Keystore DistinguishedName does not match"),
        (
            texts(),
            texts(AUTHORITY.issue("broker", organization="Org", hosts=("localhost",))),
            "Keystore SubjectAltNames do not match",
        ),
        (texts(), texts(None), "Cannot remove the SSL keystore from an existing listener"),
        (texts(None), texts(), "Cannot add SSL keystore to an existing listener"),
        (texts(trusted=None), texts(), "Cannot add SSL truststore to an existing listener"),
        (texts(), texts() | {"ssl.keystore.key": "x"}, "No matching PRIVATE KEY entries"),
    ],
)
def test_replacements_that_are_refused(old: dict[str, str], new: dict[str, str], message: str) -> None:
    with pytest.raises(ConfigError, match=f"Validation of dynamic config update of SSLFactory failed: .*{message}"):
        replaced(old, new)


def test_a_replacement_whose_name_cannot_be_read_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def unreadable(_: bytes) -> str:
        raise DerError("its end is missing")

    monkeypatch.setattr(ssl_factory, "rfc2253", unreadable)
    with pytest.raises(ConfigError, match="The name of a certificate cannot be read: its end is missing"):
        replaced(texts(), texts(AUTHORITY.issue("broker")))


def test_names_may_change_where_the_configuration_allows_it() -> None:
    other = texts(AUTHORITY.issue("other", hosts=("other.example",)))
    allowed = {"ssl.allow.dn.changes": "true", "ssl.allow.san.changes": "true"}
    replaced(texts() | allowed, other)
    with pytest.raises(ConfigError, match="Keystore DistinguishedName does not match"):
        replaced(texts(), other | allowed)


def test_only_stores_change_while_a_listener_is_open() -> None:
    others = {
        "ssl.client.auth": "required",
        "ssl.enabled.protocols": "TLSv1.2",
        "ssl.cipher.suites": "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "ssl.endpoint.identification.algorithm": "",
    }
    factory = server()
    assert factory.reconfigured(TlsSettings.of_client(texts() | others)) is factory
    new = factory.reconfigured(TlsSettings.of_client(texts(AUTHORITY.issue("broker", organization="Org")) | others))
    assert new is not factory
    assert new.settings == factory.settings.with_stores_of(new.settings)


def test_between_brokers_old_and_new_certificates_have_to_trust_each_other() -> None:
    foreign = texts(OTHER.issue("broker", organization="Org"), OTHER)
    replaced(texts(), foreign)
    with pytest.raises(ConfigError, match="The old and the new settings do not accept each other"):
        replaced(texts(), foreign, between_brokers=True)


def test_a_file_that_has_changed_is_read_anew(tmp_path: Path) -> None:
    path = BROKER.write_pem(tmp_path / "broker.pem")
    settings = TlsSettings.of_client({"ssl.keystore.type": "PEM", "ssl.keystore.location": str(path)})
    factory = SslFactory(settings, is_server=True)
    assert factory.reconfigured(settings) is factory
    AUTHORITY.issue("broker", organization="Org").write_pem(path)
    os.utime(path, (1, 1))
    new = factory.reconfigured(settings)
    assert new is not factory
    assert new.reconfigured(settings) is new


def test_a_new_context_resumes_no_session() -> None:
    """Else a client could go on with a session of an authority that is no longer trusted."""
    settings = texts(ssl_client_auth="required", ssl_enabled_protocols="TLSv1.2")
    old = SslFactory(TlsSettings.of_client(settings), is_server=True)
    connected = client(CLIENT)
    _, first = handshake(old, connected)
    session = first.session
    assert session is not None
    assert resumed(old, connected, session)
    new = old.reconfigured(TlsSettings.of_client(settings | texts(AUTHORITY.issue("broker", organization="Org"))))
    assert new is not old
    assert not resumed(new, connected, session)


def resumed(server: SslFactory, client: SslFactory, session: ssl.SSLSession) -> bool:
    accepting, _ = handshake_in_memory(server.server_context, client.client_context, session=session)
    return bool(accepting.session_reused)


def checking(*lists: str, trusted: str = AUTHORITY.pem, is_server: bool = True) -> SslFactory:
    """One end whose trust store has revocation lists; a server demands a certificate."""
    settings = texts(trusted=None, ssl_client_auth="required") | {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": one_line(trusted + "".join(lists)),
    }
    return SslFactory(TlsSettings.of_client(settings), is_server=is_server)


def test_a_revoked_client_is_refused_and_others_are_not() -> None:
    other = AUTHORITY.issue("other", hosts=())
    broker = checking(AUTHORITY.revoke(CLIENT))
    handshake(broker, client(other))
    with pytest.raises(ssl.SSLError, match="certificate revoked"):
        handshake(broker, client(CLIENT))
    handshake(server(ssl_client_auth="required"), client(CLIENT))


def test_a_revoked_broker_is_refused() -> None:
    handshake(server(), checking(AUTHORITY.revoke(CLIENT), is_server=False))
    with pytest.raises(ssl.SSLError, match="certificate revoked"):
        handshake(server(), checking(AUTHORITY.revoke(BROKER), is_server=False))


@pytest.mark.parametrize(
    ("lists", "trusted", "reason"),
    [
        ([AUTHORITY.revoke(days=-1)], AUTHORITY.pem, "CRL has expired"),
        ([OTHER.revoke()], AUTHORITY.pem + OTHER.pem, "unable to get certificate CRL"),
        ([Authority().revoke()], AUTHORITY.pem, "CRL signature failure"),
    ],
    ids=["expired", "of another authority", "forged"],
)
def test_lists_that_cannot_be_used_let_no_one_in(lists: list[str], trusted: str, reason: str) -> None:
    with pytest.raises(ssl.SSLError, match=reason):
        handshake(checking(*lists, trusted=trusted), client(CLIENT))


def test_a_list_for_each_authority() -> None:
    client_of_other = OTHER.issue("client", hosts=())
    broker = checking(AUTHORITY.revoke(CLIENT), OTHER.revoke(), trusted=AUTHORITY.pem + OTHER.pem)
    handshake(broker, client(client_of_other))
    with pytest.raises(ssl.SSLError, match="certificate revoked"):
        handshake(broker, client(CLIENT))


def test_a_list_that_is_none() -> None:
    broken = AUTHORITY.revoke().replace("MI", "AA", 1)
    with pytest.raises(ConfigError, match=r"The revocation lists of TrustStore\(None\) cannot be used"):
        checking(broken)


def test_a_list_that_is_cut_off_does_not_count_as_no_list() -> None:
    with pytest.raises(ConfigError, match="Damaged X509 CRL entry in PEM: 1 begin and 0 end, and 0 can be read"):
        checking(AUTHORITY.revoke(CLIENT)[:-30])


def test_a_list_is_replaced_with_its_store(tmp_path: Path) -> None:
    path = tmp_path / "trust.pem"
    path.write_text(AUTHORITY.pem)
    settings = texts(trusted=None, ssl_client_auth="required") | {
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(path),
    }
    before = SslFactory(TlsSettings.of_client(settings), is_server=True)
    handshake(before, client(CLIENT))
    path.write_text(AUTHORITY.pem + AUTHORITY.revoke(CLIENT))
    os.utime(path, ns=(1, 1))
    after = before.reconfigured(before.settings)
    assert after is not before
    with pytest.raises(ssl.SSLError, match="certificate revoked"):
        handshake(after, client(CLIENT))
