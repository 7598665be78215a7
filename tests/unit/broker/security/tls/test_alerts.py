from __future__ import annotations

import ssl

import pytest

from odradek.broker.security.tls.alerts import alert_of
from odradek.broker.security.tls.settings import TlsSettings
from odradek.broker.security.tls.ssl_factory import SslFactory
from tests.support.certificates import Authority, one_line

AUTHORITY = Authority()
BROKER = AUTHORITY.issue("broker")


@pytest.fixture
def server() -> ssl.SSLContext:
    texts = {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.certificate.chain": one_line(BROKER.chain_pem),
        "ssl.keystore.key": one_line(BROKER.key_pem()),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.certificates": one_line(AUTHORITY.pem),
        "ssl.client.auth": "required",
    }
    return SslFactory(TlsSettings.of_client(texts), is_server=True).server_context


def test_the_error_of_a_failed_handshake_has_the_alert(server: ssl.SSLContext) -> None:
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    accepting = server.wrap_bio(to_server, to_client, server_side=True)
    client = ssl.create_default_context(cadata=AUTHORITY.pem)
    connecting = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    for end in (connecting, accepting):
        with pytest.raises(ssl.SSLWantReadError) as wants:
            end.do_handshake()
        assert alert_of(wants.value) == b"", "what is for the client stays where the loop takes it"
    connecting.do_handshake()  # over for the client, who has shown no certificate
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN_A_CERTIFICATE") as failed:
        accepting.do_handshake()
    to_client.write(alert_of(failed.value))
    with pytest.raises(ssl.SSLError, match="ALERT_CERTIFICATE_REQUIRED"):
        connecting.read(1)


def test_another_error_has_no_alert() -> None:
    assert alert_of(ssl.SSLError(1, "x")) == b""
