"""Clients over TLS that show a certificate, and clients that are refused: the same against Apache Kafka."""

from __future__ import annotations

import asyncio
import socket
import ssl
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import aiokafka
import confluent_kafka
import kafka
import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.headers import RequestHeader, encode_request
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from tests.conformance.security.conftest import Certificates
from tests.support.broker import Broker
from tests.support.certificates import Authority, Identity
from tests.support.processes.apache import newer_client
from tests.support.processes.apache.apache import ApacheBroker
from tests.support.processes.apache.tools import Tools
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port
from tests.support.processes.refusals import logged_once
from tests.support.testing.kafka_python import METADATA_MAX_AGE_MS
from tests.support.waiting import eventually

pytestmark = pytest.mark.oracle

LARGE = b"large " * 100_000
VALUES = [b"first", b"x" * 20_000, LARGE, b"last"]
"""Below and above the sizes at which a broker receives and sends in other ways."""
TIMEOUT_S = 20


@dataclass(frozen=True)
class Listener:
    """The TLS listener of a broker."""

    broker: Broker
    port: int
    host: str = "127.0.0.1"

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"


@pytest.fixture(scope="module")
def tls_broker(
    make_broker: Callable[..., ApacheBroker | OdradekBroker],
    certificates: Certificates,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Listener]:
    plain, port = free_port(), free_port()
    settings = certificates.broker_settings(
        **{
            "listeners": f"PLAINTEXT://127.0.0.1:{plain},CLIENTS://127.0.0.1:{port}",
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CLIENTS:SSL",
        }
    )
    broker = make_broker(tmp_path_factory.mktemp("tls"), settings)
    broker.port = plain
    broker.start()
    yield Listener(broker, port)
    log = broker.log_text()
    broker.stop()
    assert broker.target == "apache" or "Traceback" not in log, log


def test_librdkafka(tls_broker: Listener, certificates: Certificates) -> None:
    settings = certificates.librdkafka(tls_broker.bootstrap)
    producer = confluent_kafka.Producer(settings | {"message.max.bytes": 2_000_000})
    for value in VALUES:
        producer.produce("librdkafka", value)
    assert producer.flush(TIMEOUT_S) == 0
    consumer = confluent_kafka.Consumer(settings | {"group.id": "librdkafka", "auto.offset.reset": "earliest"})
    consumer.subscribe(["librdkafka"])
    received = [message for _ in VALUES if (message := consumer.poll(TIMEOUT_S)) is not None]
    consumer.close()
    assert [message.value() for message in received] == VALUES


def test_kafka_python(tls_broker: Listener, certificates: Certificates) -> None:
    settings = {
        "bootstrap_servers": tls_broker.bootstrap,
        "security_protocol": "SSL",
        "ssl_context": certificates.context(certificates.client),
    }
    producer = kafka.KafkaProducer(**settings, max_request_size=2_000_000)
    for value in VALUES:
        producer.send("kafka-python", value)
    producer.close(TIMEOUT_S)
    consumer = kafka.KafkaConsumer(
        "kafka-python",
        **settings,
        auto_offset_reset="earliest",
        consumer_timeout_ms=TIMEOUT_S * 1000,
        metadata_max_age_ms=METADATA_MAX_AGE_MS,
    )
    assert [next(consumer).value for _ in VALUES] == VALUES
    consumer.close()


def test_aiokafka(tls_broker: Listener, certificates: Certificates) -> None:
    settings = {
        "bootstrap_servers": tls_broker.bootstrap,
        "security_protocol": "SSL",
        "ssl_context": certificates.context(certificates.client),
    }

    async def run() -> list[bytes | None]:
        async with aiokafka.AIOKafkaProducer(**settings, max_request_size=2_000_000) as producer:
            for value in VALUES:
                await producer.send_and_wait("aiokafka", value)
        async with aiokafka.AIOKafkaConsumer("aiokafka", **settings, auto_offset_reset="earliest") as consumer:
            return [(await consumer.getone()).value for _ in VALUES]

    assert asyncio.run(asyncio.wait_for(run(), TIMEOUT_S)) == VALUES


def test_java(tls_broker: Listener, certificates: Certificates, tools: Tools) -> None:
    properties = str(certificates.java_properties())
    bootstrap = ("--bootstrap-server", tls_broker.bootstrap)
    tools.run("topics", *bootstrap, "--command-config", properties, "--create", "--topic", "java")
    lines = [b"one", b"two " * 5000, b"three"]
    tools.run(
        "console-producer", *bootstrap, "--topic", "java", "--producer.config", properties, stdin=b"\n".join(lines)
    )
    consumed = tools.run(
        "console-consumer",
        *(*bootstrap, "--topic", "java", "--consumer.config", properties, "--from-beginning"),
        *("--max-messages", "3", "--timeout-ms", "20000"),
    )
    assert consumed.lines == [line.decode().rstrip() for line in lines]


def test_a_newer_java_client(tls_broker: Listener, certificates: Certificates, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text(f"{certificates.java_properties().read_text()}bootstrap.servers={tls_broker.bootstrap}\n")
    assert newer_client.write_and_read(config, "newer-java", 1) == {newer_client.VALUE}


def answer(broker: Broker | Listener, context: ssl.SSLContext) -> bytes:
    """The beginning of the answer to ApiVersions; empty if the broker closes the connection. Raises: SSLError."""
    request = encode_request(RequestHeader(ApiKey.API_VERSIONS, 0, 7, "raw"), ApiVersionsRequest())
    with (
        socket.create_connection((broker.host, broker.port), TIMEOUT_S) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as connection,
    ):
        connection.sendall(len(request).to_bytes(4, "big") + request)
        return connection.recv(8)[4:]


def is_refused(broker: Broker | Listener, context: ssl.SSLContext) -> bool:
    """With TLS 1.3 a client sees its refusal when it reads: as an alert, or as the end of the stream."""
    try:
        return answer(broker, context) == b""
    except (ssl.SSLError, ConnectionError):
        return True


STRANGERS = Authority("Strangers")
REFUSED: dict[str, Callable[[Certificates], Identity | None]] = {
    "no certificate": lambda certificates: None,
    "expired": lambda certificates: certificates.authority.issue("client", days=-1, began_days_ago=2),
    "not yet valid": lambda certificates: certificates.authority.issue("client", began_days_ago=-1),
    "unknown authority": lambda certificates: STRANGERS.issue("client"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_client_without_a_valid_certificate_is_refused(
    tls_broker: Listener, certificates: Certificates, kind: str
) -> None:
    assert answer(tls_broker, certificates.context(certificates.client)) == b"\0\0\0\x07"
    identity = REFUSED[kind](certificates)
    # A client without an alert would try again.
    with logged_once(tls_broker.broker), pytest.raises(ssl.SSLError, match="ALERT"):
        answer(tls_broker, certificates.context(identity))
    assert answer(tls_broker, certificates.context(certificates.client)) == b"\0\0\0\x07"


@pytest.mark.parametrize(
    "junk", [b"GET / HTTP/1.1\r\n\r\n", b"\0\0\0\x14\0\x12\0\0\0\0\0\x01", b"\x16\x03\x01\xff\xff" * 9]
)
def test_junk_on_the_tls_port_is_harmless(tls_broker: Listener, certificates: Certificates, junk: bytes) -> None:
    with socket.create_connection((tls_broker.host, tls_broker.port), TIMEOUT_S) as connection:
        connection.sendall(junk)
        connection.settimeout(TIMEOUT_S)
        try:
            while connection.recv(100):  # an alert may come first
                pass
        except ConnectionResetError:
            pass
    assert answer(tls_broker, certificates.context(certificates.client)) == b"\0\0\0\x07"
    eventually(lambda: "Failed authentication with /127.0.0.1" in tls_broker.broker.log_text())


def test_tls_on_a_plaintext_port_is_harmless(broker: Broker, certificates: Certificates) -> None:
    assert is_refused(broker, certificates.context(certificates.client))


def test_old_protocols_are_not_negotiated(tls_broker: Listener, certificates: Certificates) -> None:
    context = certificates.context(certificates.client)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    assert answer(tls_broker, context) == b"\0\0\0\x07"
    context.set_ciphers("DEFAULT@SECLEVEL=0")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        context.minimum_version, context.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    assert is_refused(tls_broker, context)
