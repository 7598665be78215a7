"""Listeners whose TLS settings differ: names of clients, certificates that need not be shown, versions, cipher suites.

The same against Apache Kafka. A delegation token tells which principal a client has.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from odradek.protocol.errors import ErrorCode
from tests.conformance.security.conftest import Certificates
from tests.support.broker import Broker
from tests.support.certificates import Authority, Identity
from tests.support.processes.apache.apache import ApacheBroker
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port
from tests.support.tokens import create_token
from tests.support.wire.raw_client import ConnectionClosedError, RawClient

pytestmark = pytest.mark.oracle

HOST = "127.0.0.1"
TIMEOUT_S = 20
AES_128, AES_256 = "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384"
OF_LISTENERS = {
    "NAMED": {
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+),O=(Org)$/$2-$1/L,RULE:^CN=(plain)$/$1/,RULE:^CN=(up.*)$/$1/U"
    },
    "REQUESTED": {"ssl.client.auth": "requested"},
    "OLDER": {
        "ssl.enabled.protocols": "TLSv1.2",
        "ssl.cipher.suites": "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
        "ssl.client.auth": "none",
    },
    "NEWER": {"ssl.enabled.protocols": "TLSv1.3", "ssl.client.auth": "none"},
}


class TlsBroker(NamedTuple):
    process: Broker
    ports: dict[str, int]

    def connect(self, listener: str, context: ssl.SSLContext) -> RawClient:
        return RawClient(HOST, self.ports[listener], tls=context)


@pytest.fixture(scope="module")
def broker(
    make_broker: Callable[..., ApacheBroker | OdradekBroker],
    certificates: Certificates,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[TlsBroker]:
    plain, ports = free_port(), {name: free_port() for name in OF_LISTENERS}
    listeners = [f"PLAINTEXT://{HOST}:{plain}", *(f"{name}://{HOST}:{port}" for name, port in ports.items())]
    protocols = ["PLAINTEXT:PLAINTEXT", *(f"{name}:SSL" for name in ports)]
    settings = certificates.broker_settings(
        **{
            "listeners": ",".join(listeners),
            "listener.security.protocol.map": ",".join(protocols),
            "delegation.token.secret.key": "the-key-of-all-brokers",
        }
    )
    for name, own in OF_LISTENERS.items():
        settings |= {f"listener.name.{name.lower()}.{key}": value for key, value in own.items()}
    process = make_broker(tmp_path_factory.mktemp("tls-settings"), settings)
    process.port = plain
    process.start()
    yield TlsBroker(process, ports)
    log = process.log_text()
    process.stop()
    assert process.target == "apache" or "Traceback" not in log, log


def principal(broker: TlsBroker, listener: str, context: ssl.SSLContext) -> str:
    """Whose token the broker makes for this client. Raises: ConnectionClosedError."""
    with broker.connect(listener, context) as client:
        created = create_token(client)
    is_anonymous = created.principal_name == "ANONYMOUS"
    assert created.error_code == (ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED if is_anonymous else ErrorCode.NONE)
    return f"{created.principal_type}:{created.principal_name}"


def identity(certificates: Certificates, name: str, organization: str | None = None) -> Identity:
    return certificates.authority.issue(name, organization=organization)


def test_the_first_rule_that_applies_names_a_client(broker: TlsBroker, certificates: Certificates) -> None:
    named = {
        ("Client", "Org"): "User:org-client",
        ("plain", None): "User:plain",
        ("upper ö", None): "User:UPPER Ö",
    }
    for (name, organization), expected in named.items():
        context = certificates.context(identity(certificates, name, organization))
        assert principal(broker, "NAMED", context) == expected


def test_a_client_that_no_rule_names_is_refused(broker: TlsBroker, certificates: Certificates) -> None:
    for stranger in (identity(certificates, "stranger"), identity(certificates, "plain", "Other")):
        with pytest.raises(ConnectionClosedError):
            principal(broker, "NAMED", certificates.context(stranger))
    assert principal(broker, "NAMED", certificates.context(identity(certificates, "plain"))) == "User:plain"


def test_a_certificate_that_is_requested_need_not_be_shown_but_must_be_valid(
    broker: TlsBroker, certificates: Certificates
) -> None:
    assert principal(broker, "REQUESTED", certificates.context()) == "User:ANONYMOUS"
    assert principal(broker, "REQUESTED", certificates.context(certificates.client)) == "User:CN=client,O=Org"
    for refused in (Authority("Strangers").issue("client"), certificates.authority.issue("client", days=-1)):
        with pytest.raises((ssl.SSLError, ConnectionClosedError)):
            principal(broker, "REQUESTED", certificates.context(refused))


def negotiated(
    broker: TlsBroker, listener: str, context: ssl.SSLContext, version: ssl.TLSVersion, ciphers: str = ""
) -> tuple[str | None, str]:
    """The version and the cipher suite with a client that has this version alone. Raises: ssl.SSLError."""
    context.minimum_version = context.maximum_version = version
    if ciphers:
        context.set_ciphers(ciphers)
    with (
        socket.create_connection((HOST, broker.ports[listener]), TIMEOUT_S) as plain,
        context.wrap_socket(plain, server_hostname=HOST) as connection,
    ):
        suite = connection.cipher()
        assert suite is not None
        return connection.version(), suite[0]


@pytest.mark.parametrize(
    ("listener", "version", "other"),
    [
        ("OLDER", ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3),
        ("NEWER", ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_2),
    ],
)
def test_versions_that_are_not_enabled_are_refused(
    broker: TlsBroker,
    certificates: Certificates,
    listener: str,
    version: ssl.TLSVersion,
    other: ssl.TLSVersion,
) -> None:
    assert negotiated(broker, listener, certificates.context(), version)[0] == version.name.replace("_", ".")
    with pytest.raises(ssl.SSLError, match="ALERT_PROTOCOL_VERSION"):
        negotiated(broker, listener, certificates.context(), other)


def test_cipher_suites_that_are_not_named_are_refused(broker: TlsBroker, certificates: Certificates) -> None:
    older = ssl.TLSVersion.TLSv1_2
    both = f"{AES_256}:{AES_128}"
    assert negotiated(broker, "OLDER", certificates.context(), older, both) == ("TLSv1.2", AES_128)
    with pytest.raises(ssl.SSLError, match="HANDSHAKE_FAILURE"):
        negotiated(broker, "OLDER", certificates.context(), older, AES_256)
    assert negotiated(broker, "REQUESTED", certificates.context(), older, AES_256) == ("TLSv1.2", AES_256)
