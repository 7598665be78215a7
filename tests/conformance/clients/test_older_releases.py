"""The clients against brokers that serve what older releases of Apache Kafka served (`odradek.as.version`)."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException

from odradek.protocol.api import ApiKey
from odradek.protocol.messages.metadata import MetadataResponse
from tests.support.admin import Admin
from tests.support.loads.clients import Client, Message, python_clients
from tests.support.loads.transactional_clients import (
    AiokafkaTransactions,
    ConfluentTransactions,
    JavaTransactions,
    KafkaPythonTransactions,
    TransactionalClient,
    TransactionFailedError,
)
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.processes.process import ManagedProcess
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

RELEASES = ("0.11", "1.1", "2.0", "2.8", "3.5")
START_TIMEOUT_S = 60
NAMES = ("java", "confluent", "kafka-python", "aiokafka")
KNOWS_ONLY_GROUPS = ("0.11", "1.1", "2.0")
"""Before 2.5 TxnOffsetCommit names no member (KIP-447)."""


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def older(release: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OdradekBroker]:
    broker = OdradekBroker(tmp_path_factory.mktemp("older"))
    broker.options = ["--as-version", release]
    with running(broker):
        yield broker


@pytest.fixture(scope="module")
def java() -> Iterator[JavaTransactions]:
    client = JavaTransactions()
    yield client
    client.close()


@pytest.fixture
def clients(java: JavaTransactions, release: str) -> dict[str, TransactionalClient]:
    java.commits_for = "group" if release in KNOWS_ONLY_GROUPS else "member"
    return {
        "java": java,
        "confluent": ConfluentTransactions(),
        "kafka-python": KafkaPythonTransactions(),
        "aiokafka": AiokafkaTransactions(),
    }


@pytest.mark.parametrize("name", NAMES)
def test_client_produces_and_copies_in_transactions_as_a_member_of_a_group(
    older: OdradekBroker, clients: dict[str, TransactionalClient], unique: Callable[[str], str], name: str
) -> None:
    client = clients[name]
    admin = Admin(older.bootstrap)
    source, sink = (admin.create_topic(unique(stem)) for stem in ("source", "sink"))
    producer = client.producer(older.bootstrap, unique("writer"))
    for i in range(5):
        producer.begin()
        producer.send(source, str(i))
        producer.commit() if i != 2 else producer.abort()
    producer.close()
    client.transform(older.bootstrap, source, sink, unique("group"), unique("copier"), 4)
    assert [value for _, value in client.read(older.bootstrap, sink, "read_committed")] == ["0'", "1'", "3'", "4'"]


@pytest.mark.parametrize("client", python_clients(), ids=lambda client: client.name)
def test_plain_records_with_headers_and_all_codecs(
    older: OdradekBroker, unique: Callable[[str], str], release: str, client: Client
) -> None:
    topic = Admin(older.bootstrap).create_topic(unique("plain"))
    codecs = [codec for codec in client.codecs if codec != "zstd" or release in ("2.8", "3.5")]
    for codec in codecs:
        sent = [Message(key=b"k", value=codec.encode() * 50, headers=(("a", b"1"),))]
        client.produce(older.bootstrap, topic, sent, codec=codec)
    received = client.consume(older.bootstrap, topic, len(codecs))
    assert [record.content for record in received] == [(b"k", codec.encode() * 50, (("a", b"1"),)) for codec in codecs]


def test_java_cannot_commit_for_a_member_before_2_5(tmp_path: Path, java: JavaTransactions) -> None:
    """What an application meets there with Apache Kafka: seen in time."""
    broker = OdradekBroker(tmp_path)
    broker.options = ["--as-version", "2.4"]
    with running(broker):
        admin = Admin(broker.bootstrap)
        source, sink = (admin.create_topic(name) for name in ("source", "sink"))
        producer = java.producer(broker.bootstrap, "writer")
        producer.begin()
        producer.send(source, "a")
        producer.commit()
        java.commits_for = "member"
        with pytest.raises(TransactionFailedError, match="UnsupportedVersionException"):
            java.transform(broker.bootstrap, source, sink, "group", "copier", 1)


def test_topic_ids_came_with_2_8(older: OdradekBroker, release: str, unique: Callable[[str], str]) -> None:
    topic = Admin(older.bootstrap).create_topic(unique("ids"))
    with RawClient(older.host, older.port) as client:
        answer = client.call(build(ApiKey.METADATA, topics=[{"name": topic}]), 10 if release in ("2.8", "3.5") else 4)
    assert isinstance(answer, MetadataResponse)
    assert (answer.topics[0].topic_id != bytes(16)) == (release in ("2.8", "3.5"))
    assert (older.log_dir / f"{topic}-0" / "partition.metadata").exists() == (release in ("2.8", "3.5"))


def test_topics_of_0_11_are_deleted_only_where_that_was_switched_on(
    older: OdradekBroker, release: str, unique: Callable[[str], str]
) -> None:
    admin = Admin(older.bootstrap)
    topic = admin.create_topic(unique("deleted"))
    if release == "0.11":
        with pytest.raises(KafkaException):
            admin.delete_topic(topic)
    else:
        admin.delete_topic(topic)


@pytest.mark.parametrize("release", ["2.7", "3.3"])
def test_brokers_of_a_cluster_understand_each_other(release: str, tmp_path: Path) -> None:
    """They ask each other within the ranges of the release: replication, ISR, transactions over the brokers."""
    options = ["--brokers", "3", "--port", "0", "--data", str(tmp_path / "data"), "--as-version", release]
    process = ManagedProcess(
        [sys.executable, "-m", "odradek", "serve", *options],
        tmp_path / "cluster.log",
        cwd=tmp_path,
        env={"PYTHONPATH": str(REPOSITORY / "src")},
    )
    process.start()
    try:
        bootstrap = process.wait_for_line(r"^  bootstrap servers  (\S+)$", START_TIMEOUT_S)[1]
        admin = Admin(bootstrap)
        source, sink = (admin.create_topic(name, 1, {"min.insync.replicas": "3"}, replicas=3) for name in ("a", "b"))
        client = ConfluentTransactions()
        producer = client.producer(bootstrap, "writer")
        for value in ("1", "2"):
            producer.begin()
            producer.send(source, value)
            producer.commit()
        client.transform(bootstrap, source, sink, "group", "copier", 2)
        assert [value for _, value in client.read_stable(bootstrap, sink)] == ["1'", "2'"]
        assert "is not supported" not in process.log_text()
        assert "Traceback" not in process.log_text()
        assert process.terminate() == 0
    finally:
        if process.is_running:
            process.kill()
