"""Jobs by `spark-submit` on a standalone cluster: the executors get the code of the jobs, and write to the broker."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from spark_jobs.common.code_archive import write_archive
from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.spark.cluster import SparkCluster
from tests.support.spark.pieces import MARKS, Outgoing, send

pytestmark = MARKS

PARTITIONS = 4
RECORDS = 400
DIFFERENT = 3
SCHEMA = {"type": "object", "required": ["user"], "properties": {"user": {"type": "string"}}}


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the workers keep the output of their executors."""
    return tmp_path_factory.mktemp("cluster")


@pytest.fixture(scope="module")
def cluster(directory: Path) -> Iterator[SparkCluster]:
    started = SparkCluster(directory)
    try:
        started.start()
        yield started
    finally:
        started.close()


@pytest.fixture(scope="module")
def code(directory: Path) -> Path:
    archive = directory / "jobs.zip"
    write_archive(archive)
    return archive


def test_a_topic_is_archived_and_restored_and_its_lag_shown(
    cluster: SparkCluster, code: Path, directory: Path, broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    topic = Admin(broker.bootstrap).create_topic(unique("on-a-cluster"), PARTITIONS)
    send(broker.bootstrap, topic, (Outgoing(value=b"%d" % n, partition=n % PARTITIONS) for n in range(RECORDS)))
    servers = ["--bootstrap-servers", broker.bootstrap]

    output = ["--output", str(tmp_path / "archive"), "--checkpoint", str(tmp_path / "checkpoint")]
    printed = cluster.submit(code, "archive_topic", [*servers, "--topic", topic, *output, "--available-now"])
    assert f"done: {RECORDS} records in 1 batch" in printed.splitlines()

    target = ["--map-topic", f"{topic}={topic}-copy", "--create-topic", "--exactly-once"]
    printed = cluster.submit(code, "restore_topic", [*servers, "--archive", str(tmp_path / "archive"), *target])
    assert f"done: {RECORDS} records restored, 0 were there before" in printed.splitlines()

    group = unique("reader")
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, 40)], asynchronous=False)
    consumer.close()
    where = ["--output", str(tmp_path / "lag"), "--window", "1 minute"]
    printed = cluster.submit(code, "consumer_lag", [*servers, "--group", group, "--once", *where])
    assert [group, topic, "0", "40", "100", "60"] in [line.split()[:6] for line in printed.splitlines()]
    assert (tmp_path / "lag" / "index.html").is_file()
    executors = {path.parent.name for path in directory.glob("worker-*/app-*/*/stderr")}
    assert executors == {"0", "1"}, "both workers have run tasks"


def test_clicks_are_validated_and_grouped_into_sessions(
    cluster: SparkCluster, code: Path, broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    admin, servers = Admin(broker.bootstrap), ["--bootstrap-servers", broker.bootstrap]
    clicks, sessions = admin.create_topic(unique("clicks"), 2), admin.create_topic(unique("sessions"), 2)
    good, bad = f"{clicks}-good", f"{clicks}-bad"
    sent = [click("ann", 0), click("ann", 60), click("bob", 30), b"not JSON", b'{"user": 1}', click("eve", 7_200)]
    send(broker.bootstrap, clicks, (Outgoing(value=value, partition=n % 2) for n, value in enumerate(sent)))
    (tmp_path / "click.json").write_text(json.dumps(SCHEMA))

    topics = ["--topic", clicks, "--output-topic", good, "--dead-letter-topic", bad, "--create-topic"]
    rules = ["--schema", str(tmp_path / "click.json"), "--checkpoint", str(tmp_path / "validated")]
    printed = cluster.submit(code, "validate_records", [*servers, *topics, *rules, "--available-now"])
    assert "done: 4 good, 2 bad" in printed.splitlines()

    topics = ["--topic", good, "--output-topic", sessions, "--checkpoint", str(tmp_path / "sessionized")]
    times = ["--gap", "10 minutes", "--watermark", "1 minute", "--state-partitions", "2"]
    cluster.submit(code, "sessionize", [*servers, *topics, *times, "--available-now"])
    ended = {found["user"]: found["clicks"] for found in map(json.loads, values_of(broker.bootstrap, sessions, 2))}
    assert ended == {"ann": 2, "bob": 1}


def test_two_topics_are_compared(
    cluster: SparkCluster, code: Path, broker: Broker, unique: Callable[[str], str]
) -> None:
    admin = Admin(broker.bootstrap)
    ours, other = admin.create_topic(unique("ours")), admin.create_topic(unique("other"))
    for topic, count in ((ours, 100), (other, 99)):
        send(broker.bootstrap, topic, (Outgoing(key=b"%d" % n, value=b"v", timestamp_ms=n + 1) for n in range(count)))
    arguments = ["--bootstrap-servers", broker.bootstrap, "--topic", ours, "--other-topic", other]
    printed = cluster.submit(code, "compare_topics", arguments, DIFFERENT)
    assert "different: 1 missing" in printed.splitlines()
    assert [["missing", ours, "0:99"]] == [line.split() for line in printed.splitlines() if line.startswith("missing ")]


def test_log_directories_are_reported_and_audited(
    cluster: SparkCluster, code: Path, broker: Broker, unique: Callable[[str], str]
) -> None:
    """Both read the directories on the workers, which are on this machine."""
    topic = Admin(broker.bootstrap).create_topic(unique("users"), 1, {"cleanup.policy": "compact"})
    send(broker.bootstrap, topic, (Outgoing(key=b"%d" % (n % 10), value=b"v") for n in range(50)))
    where = ["--log-dirs", str(broker.log_dir), "--topic", topic]
    printed = cluster.submit(code, "balance_partitions", [*where, "--report-only"])
    assert [f"{topic}-0", "0", "50"] in [line.split()[:2] + line.split()[4:5] for line in printed.splitlines()]
    printed = cluster.submit(code, "audit_compaction", where)
    assert [f"{topic}-0", "50", "10"] in [line.split()[:2] + line.split()[4:5] for line in printed.splitlines()]


def click(user: str, second: int) -> bytes:
    at = datetime(2026, 3, 1, 10, tzinfo=UTC) + timedelta(seconds=second)
    return json.dumps({"user": user, "time": at.isoformat(), "page": "/"}).encode()


def values_of(bootstrap: str, topic: str, partitions: int) -> list[bytes]:
    """The values of all records of a topic."""
    config = {"bootstrap.servers": bootstrap, "group.id": "not-used", "enable.partition.eof": True}
    consumer = Consumer({**config, "enable.auto.commit": False})
    consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING) for partition in range(partitions)])
    values, ended = [], 0
    while ended < partitions:
        message = consumer.poll(30)
        assert message is not None
        if (error := message.error()) is None:
            values.append(message.value())
        else:
            assert error.code() == KafkaError._PARTITION_EOF, error
            ended += 1
    consumer.close()
    return values
