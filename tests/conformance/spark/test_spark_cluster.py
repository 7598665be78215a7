"""Jobs by `spark-submit` on a standalone cluster: the executors get the code of the jobs, and write to the broker."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, TopicPartition

from spark_jobs.common.code_archive import write_archive
from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.processes.spark import MARKS, Outgoing, send
from tests.support.processes.spark_cluster import SparkCluster

pytestmark = MARKS

PARTITIONS = 4
RECORDS = 400


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[SparkCluster]:
    started = SparkCluster(tmp_path)
    try:
        started.start()
        yield started
    finally:
        started.close()


def test_a_topic_is_archived_and_restored_and_its_lag_shown(
    cluster: SparkCluster, broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    topic = Admin(broker.bootstrap).create_topic(unique("on-a-cluster"), PARTITIONS)
    send(broker.bootstrap, topic, (Outgoing(value=b"%d" % n, partition=n % PARTITIONS) for n in range(RECORDS)))
    code = tmp_path / "jobs.zip"
    write_archive(code)
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
    executors = {path.parent.name for path in tmp_path.glob("worker-*/app-*/*/stderr")}
    assert executors == {"0", "1"}, "both workers have run tasks"
