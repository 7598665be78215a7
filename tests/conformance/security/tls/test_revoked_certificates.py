"""Clients with revoked certificates, by lists in the trust store that are replaced while the broker runs."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.headers import RequestHeader, encode_request
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from tests.conformance.security.conftest import Certificates
from tests.conformance.security.tls.test_certificate_changes import alter
from tests.support.certificates import Authority, Identity
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.processes.ports import free_port
from tests.support.waiting import eventually

ASKED = encode_request(RequestHeader(ApiKey.API_VERSIONS, 0, 1, "c"), ApiVersionsRequest())


class Clients:
    """A broker with a TLS listener that demands certificates, and the file of its trust store."""

    def __init__(self, broker: OdradekBroker, port: int, authority: Authority, store: Path) -> None:
        self.broker = broker
        self.store = store
        self._authority = authority
        self._port = port

    def connect(self, client: Identity, directory: Path) -> str:
        """ "accepted", "closed", or the alert of the broker. TLS 1.3: the client has ended the handshake before it."""
        context = ssl.create_default_context(cadata=self._authority.pem)
        context.load_cert_chain(client.write_pem(directory / "client.pem"))
        with socket.create_connection(("127.0.0.1", self._port), 10) as plain:
            try:
                with context.wrap_socket(plain, server_hostname="localhost") as connection:
                    connection.sendall(len(ASKED).to_bytes(4, "big") + ASKED)
                    return "accepted" if connection.recv(1) else "closed"
            except ssl.SSLError as error:
                return error.reason

    def trust(self, *lists: str) -> None:
        """Replace the store, and tell the broker so, as kafka-configs does."""
        self.store.write_text(self._authority.pem + "".join(lists))
        assert alter(self.broker, {"listener.name.clients.ssl.truststore.location": str(self.store)}) == (0, None)


@pytest.fixture
def clients(certificates: Certificates, tmp_path: Path) -> Iterator[Clients]:
    plain, port = free_port(), free_port()
    store = certificates.authority.write_pem(tmp_path / "trust.pem")
    settings = certificates.broker_settings(
        **{
            "listeners": f"PLAINTEXT://127.0.0.1:{plain},CLIENTS://127.0.0.1:{port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SSL",
            "listener.name.clients.ssl.truststore.type": "PEM",
            "listener.name.clients.ssl.truststore.location": str(store),
        }
    )
    del settings["ssl.truststore.location"], settings["ssl.truststore.password"], settings["ssl.truststore.type"]
    broker = OdradekBroker(tmp_path / "broker", settings)
    broker.port = plain
    with running(broker):
        yield Clients(broker, port, certificates.authority, store)


def test_a_revoked_client_is_refused_and_logged_once(
    clients: Clients, certificates: Certificates, tmp_path: Path
) -> None:
    authority, revoked, other = certificates.authority, certificates.client, certificates.authority.issue("other")
    assert clients.connect(revoked, tmp_path) == "accepted", "without a list nothing is checked"
    clients.trust(authority.revoke(revoked))
    assert clients.connect(revoked, tmp_path) == "SSLV3_ALERT_CERTIFICATE_REVOKED"
    assert clients.connect(other, tmp_path) == "accepted"
    refusal = "SSL handshake failed: certificate revoked"
    assert eventually(clients.broker.log_text, accept=lambda text: refusal in text).count(refusal) == 1
    clients.trust(authority.revoke(revoked, days=-1))
    assert clients.connect(other, tmp_path) == "SSLV3_ALERT_CERTIFICATE_EXPIRED", "nobody, until there is a new list"
    clients.trust()
    assert clients.connect(revoked, tmp_path) == "accepted"
