"""Certificates of this area's tests, and the settings of brokers and clients that use them."""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.certificates import PASSWORD, Authority, Identity
from tests.support.processes.ports import free_port


@dataclass(frozen=True)
class Certificates:
    """Files of one authority, a broker and a client."""

    directory: Path
    authority: Authority
    broker: Identity
    client: Identity

    def broker_settings(self, **more: str) -> dict[str, str]:
        """PKCS12 stores, and a certificate demanded of each client."""
        return {
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.location": str(self.broker.write_pkcs12(self.directory / "broker.p12")),
            "ssl.keystore.password": PASSWORD,
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": str(self.authority.write_pkcs12(self.directory / "trust.p12")),
            "ssl.truststore.password": PASSWORD,
            "ssl.client.auth": "required",
            **more,
        }

    def pem(self, identity: Identity | None = None) -> Path:
        """A file with the key and the chain of a client."""
        return (identity or self.client).write_pem(self.directory / "client.pem")

    @property
    def ca(self) -> Path:
        return self.authority.write_pem(self.directory / "ca.pem")

    def java_properties(self) -> Path:
        """The configuration of a Java client, in PEM."""
        path = self.directory / "client.properties"
        path.write_text(
            f"security.protocol=SSL\nssl.keystore.type=PEM\nssl.keystore.location={self.pem()}\n"
            f"ssl.truststore.type=PEM\nssl.truststore.location={self.ca}\n"
        )
        return path

    def librdkafka(self, bootstrap: str, identity: Identity | None = None) -> dict[str, str]:
        return {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SSL",
            "ssl.ca.location": str(self.ca),
            "ssl.certificate.location": str(self.pem(identity)),
            "ssl.key.location": str(self.pem(identity)),
        }

    def context(self, identity: Identity | None = None) -> ssl.SSLContext:
        """For clients in Python; without `identity` the client has no certificate."""
        context = ssl.create_default_context(cafile=str(self.ca))
        if identity is not None:
            context.load_cert_chain(self.pem(identity))
        return context


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    authority = Authority()
    broker, client = authority.issue("broker", organization="Org"), authority.issue("client", organization="Org")
    return Certificates(tmp_path_factory.mktemp("certificates"), authority, broker, client)


@pytest.fixture
def ssl_listener() -> dict[str, str]:
    """Settings of a broker whose only listener is SSL, on a free port."""
    return {"listeners": f"SSL://127.0.0.1:{free_port()}", "security.inter.broker.protocol": "SSL"}
