"""SASL over TLS: a user with a password, and no certificate, though the broker demands one on its other listeners."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest

from tests.conformance.security.conftest import Certificates
from tests.support.processes.apache.apache import ApacheBroker
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port
from tests.support.waiting import eventually

pytestmark = pytest.mark.oracle

VALUES = [b"small", b"x" * 300_000]
TIMEOUT_S = 20


@pytest.fixture(scope="module")
def bootstrap(
    make_broker: Callable[..., ApacheBroker | OdradekBroker],
    certificates: Certificates,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[str]:
    plain, port = free_port(), free_port()
    settings = certificates.broker_settings(
        **{
            "listeners": f"PLAINTEXT://127.0.0.1:{plain},SASL_SSL://127.0.0.1:{port}",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": (
                'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
            ),
        }
    )
    broker = make_broker(tmp_path_factory.mktemp("sasl-ssl"), settings)
    broker.port = plain
    broker.start()
    yield f"127.0.0.1:{port}"
    broker.stop()


def client(bootstrap: str, certificates: Certificates, password: str) -> dict[str, str]:
    return {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": password,
        "ssl.ca.location": str(certificates.ca),
    }


def test_a_user_with_a_password(bootstrap: str, certificates: Certificates) -> None:
    settings = client(bootstrap, certificates, "secret")
    producer = confluent_kafka.Producer(settings)
    for value in VALUES:
        producer.produce("sasl-ssl", value)
    assert producer.flush(TIMEOUT_S) == 0
    consumer = confluent_kafka.Consumer(settings | {"group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["sasl-ssl"])
    received = [message for _ in VALUES if (message := consumer.poll(TIMEOUT_S)) is not None]
    consumer.close()
    assert [message.value() for message in received] == VALUES


def test_a_wrong_password(bootstrap: str, certificates: Certificates) -> None:
    errors: list[str] = []
    settings = client(bootstrap, certificates, "wrong")
    producer = confluent_kafka.Producer(settings | {"error_cb": lambda error: errors.append(str(error))})
    producer.produce("sasl-ssl", b"refused", on_delivery=lambda error, _: errors.append(str(error)))

    def told() -> list[str]:
        producer.poll(0)
        return errors

    refusal = "Authentication failed: Invalid username or password"
    eventually(told, accept=lambda errors: any(refusal in error for error in errors), timeout_s=TIMEOUT_S)
    producer.purge()
    producer.flush(TIMEOUT_S)


def test_a_command(bootstrap: str, certificates: Certificates, tmp_path: Path) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nssl.truststore.type=PEM\n"
        f"ssl.truststore.location={certificates.ca}\n"
        'sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" '
        'password="secret";\n'
    )
    command = [sys.executable, "-m", "odradek", "topics", "--bootstrap-server", bootstrap]
    listed = subprocess.run(
        [*command, "--command-config", str(properties), "--create", "--topic", "by-command"],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert listed.returncode == 0, listed.stderr
