"""Spark's source, an archive and its restore with a broker whose clients log in over TLS, with a settings file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from odradek.storage.disk.properties_file import parse_properties
from spark_jobs.archive.restore_options import parse_options as restore_options
from spark_jobs.common.streaming_run import StopRequest
from spark_jobs.restore_topic import restore
from tests.support.broker import Broker
from tests.support.certificates import Authority
from tests.support.loads.killed_archive import Archive
from tests.support.processes.apache.apache import ApacheBroker
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port
from tests.support.processes.sasl_listeners import CANARY, PASSWORDS, client_properties, listener_settings
from tests.support.spark.pieces import MARKS, Outgoing, in_order, kafka_batch, received, send

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["tests.support.spark.session"]
pytestmark = MARKS

Config = dict[str, str]


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def secured(
    make_broker: Callable[..., ApacheBroker | OdradekBroker],
    authority: Authority,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Broker]:
    """A broker with the port of its SASL_SSL listener."""
    directory = tmp_path_factory.mktemp("secured")
    plaintext, sasl = free_port(), free_port()
    settings = listener_settings(plaintext, sasl) | {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,AUTH:SASL_SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(authority.issue("broker").write_pem(directory / "broker.pem")),
    }
    broker = make_broker(directory / "broker", settings)
    broker.port = plaintext
    broker.start()
    broker.port = sasl
    yield broker
    assert CANARY not in broker.log_text()
    broker.close()


@pytest.fixture(scope="module")
def ca(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return authority.write_pem(tmp_path_factory.mktemp("authority") / "ca.pem")


@pytest.fixture
def properties(ca: Path, tmp_path: Path) -> Path:
    """The file that Kafka's tools take as well."""
    file = tmp_path / "client.properties"
    text = client_properties("PLAIN", "alice").replace("=SASL_PLAINTEXT", "=SASL_SSL")
    file.write_text(f"{text}ssl.truststore.type=PEM\nssl.truststore.location={ca}\n")
    return file


@pytest.fixture
def producer_config(ca: Path) -> Config:
    return {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": PASSWORDS["alice"],
        "ssl.ca.location": str(ca),
    }


def test_the_source_the_archive_and_its_restore(
    spark: SparkSession,
    secured: Broker,
    properties: Path,
    producer_config: Config,
    unique: Callable[[str], str],
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    topic = unique("secured")
    records = (Outgoing(key=b"k", value=b"%d" % number) for number in range(500))
    sent = send(secured.bootstrap, topic, records, **producer_config)
    options = {f"kafka.{key}": value for key, value in parse_properties(properties.read_text()).items()}
    batch = kafka_batch(spark, secured.bootstrap, subscribe=topic, includeHeaders="true", **options)
    assert received(batch.load()) == in_order(sent)
    run = Archive(spark, secured, topic, tmp_path)
    run.run("--command-config", str(properties))
    assert received(run.read()) == in_order(sent)
    where = ["--bootstrap-servers", secured.bootstrap, "--archive", str(run.output), "--exactly-once"]
    target = ["--map-topic", f"{topic}={topic}-copy", "--create-topic", "--no-source-header"]
    restore(spark, restore_options([*where, *target, "--command-config", str(properties)]), StopRequest())
    copied = kafka_batch(spark, secured.bootstrap, subscribe=f"{topic}-copy", includeHeaders="true", **options)
    restored = [(each.offset, each.timestamp_ms, each.key, each.value) for each in received(copied.load())]
    assert restored == [(each.offset, each.timestamp_ms, each.key, each.value) for each in in_order(sent)]
    assert not [path for path in run.checkpoint.rglob("*") if path.is_file() and CANARY in path.read_text("latin-1")]
    assert CANARY not in "".join(capfd.readouterr())
