"""Client libraries with GSSAPI over TLS: each writes a record, and reads those of all. The same with Apache Kafka.

librdkafka is Debian's, with kcat: that of confluent-kafka's wheel is built without GSSAPI.
"""

from __future__ import annotations

import asyncio
import shutil
import ssl
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import aiokafka
import kafka
import pytest

from tests.support.certificates import Authority
from tests.support.kerberos.kdc import PATH, REALM, Kdc
from tests.support.kerberos.settings import BROKER, HOST, SERVICE, client_properties, keytab_jaas, listener_settings
from tests.support.processes.apache import newer_client
from tests.support.processes.apache.apache import ApacheBroker, ZooKeeper
from tests.support.processes.apache.tools import Tools
from tests.support.processes.commands import run_command
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port
from tests.support.testing.kafka_python import METADATA_MAX_AGE_MS

pytestmark = pytest.mark.kerberos

TIMEOUT_S: Final = 30
MECHANISM: Final = "GSSAPI"
TOPIC: Final = "of-libraries"


class Listener(NamedTuple):
    """The SASL_SSL listener of a broker, and the user's keytab."""

    address: str
    ca: Path
    keytab: Path
    broker: OdradekBroker | ApacheBroker

    def python(self) -> dict[str, object]:
        """Settings of kafka-python and of aiokafka: they take the keytab from the environment."""
        return {
            "bootstrap_servers": self.address,
            "security_protocol": "SASL_SSL",
            "ssl_context": ssl.create_default_context(cafile=str(self.ca)),
            "sasl_mechanism": MECHANISM,
            "sasl_kerberos_service_name": SERVICE,
        }

    def kcat(self, *arguments: str, stdin: bytes = b"") -> bytes:
        program = shutil.which("kcat", path=PATH)
        assert program is not None, "kcat is not there: install kcat and libsasl2-modules-gssapi-mit (Debian's names)"
        settings = {
            "security.protocol": "SASL_SSL",
            "ssl.ca.location": str(self.ca),
            "sasl.mechanisms": MECHANISM,
            "sasl.kerberos.service.name": SERVICE,
            "sasl.kerberos.principal": f"alice@{REALM}",
            "sasl.kerberos.keytab": str(self.keytab),
        }
        options = [text for key, value in settings.items() for text in ("-X", f"{key}={value}")]
        done = subprocess.run(
            [program, "-b", self.address, "-t", TOPIC, *options, *arguments],
            input=stdin,
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def java(self, directory: Path) -> Path:
        """A file for Java's clients and our commands."""
        path = directory / "client.properties"
        client_properties(path, keytab_jaas(self.keytab, "alice"))
        text = path.read_text().replace("SASL_PLAINTEXT", "SASL_SSL")
        trust = f"ssl.truststore.type=PEM\nssl.truststore.location={self.ca}\n"
        path.write_text(f"{text}bootstrap.servers={self.address}\n{trust}")
        return path


@pytest.fixture(params=["odradek", "apache"])
def listener(
    request: pytest.FixtureRequest, kdc: Kdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Listener]:
    authority, keytab = Authority(), kdc.keytab("libraries", "alice")
    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(keytab))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path}/tickets")
    port, sasl_port = free_port(), free_port()
    settings = listener_settings(port, sasl_port, keytab_jaas(kdc.keytab("broker", BROKER), BROKER)) | {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,AUTH:SASL_SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("broker").write_pem(tmp_path / "broker.pem")),
    }
    zookeeper: ZooKeeper | None = None
    broker: OdradekBroker | ApacheBroker
    if request.param == "odradek":
        broker = OdradekBroker(tmp_path / "broker", settings, port)
    else:
        zookeeper = ZooKeeper(tmp_path / "zookeeper")
        zookeeper.start()
        broker = ApacheBroker(tmp_path / "broker", zookeeper.new_chroot(), settings, port=port)
    try:
        broker.start()
        yield Listener(f"{HOST}:{sasl_port}", authority.write_pem(tmp_path / "ca.pem"), keytab, broker)
        broker.stop()
    finally:
        broker.close()
        if zookeeper is not None:
            zookeeper.stop()


async def write_with_aiokafka(listener: Listener, value: bytes) -> None:
    async with aiokafka.AIOKafkaProducer(**listener.python()) as producer:
        await asyncio.wait_for(producer.send_and_wait(TOPIC, value), TIMEOUT_S)


async def read_with_aiokafka(listener: Listener, count: int) -> set[bytes | None]:
    async with aiokafka.AIOKafkaConsumer(TOPIC, auto_offset_reset="earliest", **listener.python()) as consumer:
        return {(await asyncio.wait_for(consumer.getone(), TIMEOUT_S)).value for _ in range(count)}


def read_with_kafka_python(listener: Listener, count: int) -> set[bytes]:
    settings = {
        "auto_offset_reset": "earliest",
        "consumer_timeout_ms": TIMEOUT_S * 1000,
        "metadata_max_age_ms": METADATA_MAX_AGE_MS,
    }
    consumer = kafka.KafkaConsumer(TOPIC, **settings, **listener.python())
    found = {next(consumer).value for _ in range(count)}
    consumer.close()
    return found


def test_each_library_reads_what_each_has_written(listener: Listener, tools: Tools, tmp_path: Path) -> None:
    config = listener.java(tmp_path)
    run_command(listener.address, "topics", "--create", "--topic", TOPIC, "--command-config", str(config))
    written: dict[bytes, Callable[[bytes], object]] = {
        b"from librdkafka": lambda value: listener.kcat("-P", stdin=value),
        b"from kafka-python": lambda value: write_with_kafka_python(listener, value),
        b"from aiokafka": lambda value: asyncio.run(write_with_aiokafka(listener, value)),
        b"from a command": lambda value: run_command(
            listener.address, "produce", "-t", TOPIC, "-F", str(config), stdin=value
        ),
    }
    for value, write in written.items():
        write(value)
    values, count = {*written, newer_client.VALUE}, len(written) + 1
    assert newer_client.write_and_read(config, TOPIC, count) == values

    assert set(listener.kcat("-C", "-o", "beginning", "-e", "-q").splitlines()) == values
    assert read_with_kafka_python(listener, count) == values
    assert asyncio.run(read_with_aiokafka(listener, count)) == values
    consumed = run_command(listener.address, "consume", "-t", TOPIC, "-F", str(config), "-o", "beginning", "-e")
    assert set(consumed.stdout.splitlines()) == values
    at = ("--bootstrap-server", listener.address, "--consumer.config", str(config))
    read = tools.run(
        "console-consumer", *at, "--topic", TOPIC, "--from-beginning", "--max-messages", str(count), "--group", "g"
    )
    assert {line.encode() for line in read.lines} == values
    if listener.broker.target == "odradek":
        log = listener.broker.log_text()
        assert "authenticationID=alice@EXAMPLE.COM; authorizationID='alice@EXAMPLE.COM'" in log
        assert "Traceback" not in log


def write_with_kafka_python(listener: Listener, value: bytes) -> None:
    producer = kafka.KafkaProducer(**listener.python())
    producer.send(TOPIC, value).get(TIMEOUT_S)
    producer.close()
