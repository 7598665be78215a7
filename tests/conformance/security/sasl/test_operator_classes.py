"""Python classes of an operator check the passwords of PLAIN and name the clients, in a process of their own.

Only a client that the class calls `Person:alice by CN=client,O=Org` may do anything: the class knows the user and the
certificate.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from tests.conformance.security.conftest import Certificates
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port

TIMEOUT_S = 20
MODULE = """
import time

from odradek.broker.security.principal_builder import KafkaPrincipalBuilder
from odradek.broker.security.sasl.callback_handlers import PlainCallbackHandler


class Names(KafkaPrincipalBuilder):
    def build(self, context):
        if context.authorization_id is None:
            return "User:ANONYMOUS"
        return f"Person:{context.authorization_id} by {context.peer_name}"


class Passwords(PlainCallbackHandler):
    def verify(self, user, password):
        time.sleep(0.1)  # as a directory service would take
        return password == f"{user}-secret"
"""


@pytest.fixture(scope="module")
def bootstrap(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("operator-classes")
    (directory / "company.py").write_text(MODULE)
    plain, port = free_port(), free_port()
    settings = certificates.broker_settings(
        **{
            "listeners": f"PLAINTEXT://127.0.0.1:{plain},SASL_SSL://127.0.0.1:{port}",
            "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
            "super.users": "User:ANONYMOUS;Person:alice by CN=client,O=Org",
            "principal.builder.class": "company:Names",
            "listener.name.sasl_ssl.ssl.client.auth": "required",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_ssl.plain.sasl.jaas.config": (
                "org.apache.kafka.common.security.plain.PlainLoginModule required;"
            ),
            "listener.name.sasl_ssl.plain.sasl.server.callback.handler.class": "company:Passwords",
        }
    )
    broker = OdradekBroker(directory / "broker", settings, plain)
    broker.python_path = (*broker.python_path, directory)
    broker.start()
    yield f"127.0.0.1:{port}"
    broker.stop_cleanly()


def client(certificates: Certificates, bootstrap: str, user: str, password: str) -> dict[str, str]:
    return certificates.librdkafka(bootstrap) | {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": user,
        "sasl.password": password,
    }


def produce(settings: dict[str, str]) -> list[str]:
    """The errors of a client that writes one record."""
    errors: list[str] = []
    producer = confluent_kafka.Producer(
        {**settings, "message.timeout.ms": 5000, "error_cb": lambda error: errors.append(str(error))}
    )
    producer.produce("classes", b"v", on_delivery=lambda error, _: errors.append(str(error)) if error else None)
    for _ in range(TIMEOUT_S * 10):
        producer.poll(0.1)
        if errors or not len(producer):
            break
    producer.purge()
    producer.flush(TIMEOUT_S)
    return errors


def test_the_classes_let_one_client_in(bootstrap: str, certificates: Certificates) -> None:
    assert produce(client(certificates, bootstrap, "alice", "alice-secret")) == []


def test_a_wrong_password_is_refused(bootstrap: str, certificates: Certificates) -> None:
    errors = produce(client(certificates, bootstrap, "alice", "wrong"))
    assert "Authentication failed: Invalid username or password" in errors[0]


def test_another_name_has_other_rights(bootstrap: str, certificates: Certificates) -> None:
    errors = produce(client(certificates, bootstrap, "bob", "bob-secret"))
    assert "TOPIC_AUTHORIZATION_FAILED" in errors[0]


def test_a_class_that_is_not_there_refuses_the_start(tmp_path: Path) -> None:
    broker = OdradekBroker(tmp_path, {"principal.builder.class": "company.names:Nobody"})
    broker.launch()
    assert broker.wait_for_end() != 0
    assert "principal.builder.class=company.names:Nobody: there is no module company" in broker.log_text()
