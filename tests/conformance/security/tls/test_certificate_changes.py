"""Certificates that are replaced while the broker runs: the same against Apache Kafka."""

from __future__ import annotations

import os
import socket
import ssl
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from odradek.protocol.api import ApiKey
from tests.conformance.security.conftest import Certificates
from tests.support.broker import Broker
from tests.support.certificates import PASSWORD, Identity
from tests.support.processes.apache.apache import ApacheBroker
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

pytestmark = pytest.mark.oracle

INVALID_REQUEST = 42
PREFIX = "listener.name.clients.ssl.keystore."


@pytest.fixture
def served(
    make_broker: Callable[..., ApacheBroker | OdradekBroker], certificates: Certificates, tmp_path: Path
) -> Iterator[tuple[Broker, int, Path]]:
    """A broker with a TLS listener, its port, and the file of its key store."""
    plain, port = free_port(), free_port()
    path = certificates.broker.write_pkcs12(tmp_path / "broker.p12")
    settings = certificates.broker_settings(
        **{
            "listeners": f"PLAINTEXT://127.0.0.1:{plain},CLIENTS://127.0.0.1:{port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SSL",
            "listener.name.clients.ssl.keystore.location": str(path),
            "password.encoder.secret": "encoder-secret",
            "ssl.client.auth": "none",
        }
    )
    broker = make_broker(tmp_path / "broker", settings)
    broker.port = plain
    broker.start()
    yield broker, port, path
    broker.close()


def shown(port: int, certificates: Certificates) -> bytes | None:
    """The certificate that the broker shows to a new client."""
    context = certificates.context()
    with (
        socket.create_connection(("127.0.0.1", port), 10) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        return connection.getpeercert(True)


def der(identity: Identity) -> bytes:
    return ssl.PEM_cert_to_DER_cert(identity.certificate_pem)


def alter(broker: Broker, configs: dict[str, str]) -> tuple[int, str | None]:
    """The answer to IncrementalAlterConfigs of this broker."""
    resource = {
        "resource_type": 4,
        "resource_name": "0",
        "configs": [{"name": name, "config_operation": 0, "value": text} for name, text in configs.items()],
    }
    with RawClient(broker.host, broker.port) as client:
        answer = client.call(build(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=[resource]), 1)
    (result,) = answer.responses  # type: ignore[attr-defined]
    return result.error_code, result.error_message


def test_a_certificate_is_replaced_and_encrypted_in_the_metadata(
    served: tuple[Broker, int, Path], certificates: Certificates, tmp_path: Path
) -> None:
    broker, port, _ = served
    assert shown(port, certificates) == der(certificates.broker)
    renewed = certificates.authority.issue("broker", organization="Org")
    path = renewed.write_pkcs12(tmp_path / "renewed.p12", "other-secret")
    configs = {f"{PREFIX}location": str(path), f"{PREFIX}password": "other-secret", f"{PREFIX}type": "PKCS12"}
    assert alter(broker, configs) == (0, None)
    eventually(lambda: shown(port, certificates) == der(renewed))
    assert "other-secret" not in broker.log_text()


@pytest.mark.parametrize("reason", ["another name", "fewer alternative names", "wrong password", "no file"])
def test_certificates_that_are_refused(
    served: tuple[Broker, int, Path], certificates: Certificates, tmp_path: Path, reason: str
) -> None:
    broker, port, _ = served
    issue, path, password = certificates.authority.issue, tmp_path / "other.p12", PASSWORD
    match reason:
        case "another name":
            issue("intruder", organization="Org").write_pkcs12(path)
        case "fewer alternative names":
            issue("broker", organization="Org", hosts=("localhost",)).write_pkcs12(path)
        case "wrong password":
            issue("broker", organization="Org").write_pkcs12(path)
            password = "wrong"
    code, message = alter(broker, {f"{PREFIX}location": str(path), f"{PREFIX}password": password})
    assert code == INVALID_REQUEST
    assert password == PASSWORD or password not in (message or "")
    assert shown(port, certificates) == der(certificates.broker)


def test_a_file_that_has_changed_is_read_with_the_next_change_of_any_config(
    served: tuple[Broker, int, Path], certificates: Certificates
) -> None:
    broker, port, path = served
    renewed = certificates.authority.issue("broker", organization="Org")
    renewed.write_pkcs12(path)
    os.utime(path, (1, 1))
    assert shown(port, certificates) == der(certificates.broker)
    assert alter(broker, {"log.cleaner.threads": "2"}) == (0, None)
    eventually(lambda: shown(port, certificates) == der(renewed))
