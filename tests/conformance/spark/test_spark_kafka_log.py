"""The data source `kafka_log` beside Spark's kafka source: the same rows, from the directory of a broker that runs.

Nearly all of what it does is tested without Spark (tests/unit/spark_jobs/kafka_log); here Spark plans and reads, the
files are those of a live broker, and the other reader is Spark's own.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import confluent_kafka
import pytest

from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.disk.checkpoint_files import HIGH_WATERMARK_FILE, read_offsets
from spark_jobs.common.job import reason
from spark_jobs.kafka_log import register
from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.process import ManagedProcess
from tests.support.spark.pieces import (
    MARKS,
    BackgroundProducer,
    Outgoing,
    Sent,
    in_order,
    kafka_batch,
    kill_tree,
    received,
    send,
)
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader, Row, SparkSession

pytest_plugins = ["tests.support.spark.session"]
pytestmark = MARKS

PARTITIONS = 2
CAPTURED = REPOSITORY / "tests" / "golden" / "log_directories"
SECOND_MS = 1_000
KAFKA_COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType", "headers")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
CHECKPOINT_TIMEOUT_S = 20
"""A broker writes its high watermarks every 5 s."""
FLUSH_TIMEOUT_S = 30
LINGER_MS = "60000"
"""Only the flush sends: else a busy machine splits a batch, and librdkafka sends a single record uncompressed."""
JOB_TIMEOUT_S = 120


class Topic:
    """Records of all codecs in many segments, one a second from `begin_ms` on; then transactions of both ends."""

    def __init__(self, broker: Broker, name: str) -> None:
        self.name = name
        self.begin_ms = int(time.time() - 7_200) * SECOND_MS
        self.broker = broker
        Admin(broker.bootstrap).create_topic(name, PARTITIONS, {"segment.bytes": "1500", "index.interval.bytes": "200"})
        for first in range(0, len(CODECS) * 20, 5):  # each is a batch in each partition
            self.send(first, 5, **{"compression.type": CODECS[first // 20]})
        self.transactions()

    def send(self, first: int, count: int, **config: str) -> list[Sent]:
        return send(
            self.broker.bootstrap,
            self.name,
            (
                Outgoing(
                    partition=partition,
                    key=None if number % 5 == 0 else b"key %d" % number,
                    value=None if number % 7 == 3 else b"value %d " % number * 4,
                    headers=(("number", b"%d" % number), ("none", None)) if number % 2 else (),
                    timestamp_ms=self.begin_ms + number * SECOND_MS,
                )
                for number in range(first, first + count)
                for partition in range(PARTITIONS)
            ),
            **{"linger.ms": LINGER_MS, **config},
        )

    def transactions(self) -> None:
        """Four of two records in partition 0; every other one is aborted."""
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": self.broker.bootstrap, "transactional.id": self.name, "linger.ms": 0}
        )
        producer.init_transactions(FLUSH_TIMEOUT_S)
        for number in range(4):
            producer.begin_transaction()
            for part in range(2):
                producer.produce(self.name, b"transaction %d.%d" % (number, part), partition=0)
            producer.flush(FLUSH_TIMEOUT_S)
            if number % 2:
                producer.abort_transaction(FLUSH_TIMEOUT_S)
            else:
                producer.commit_transaction(FLUSH_TIMEOUT_S)

    def wait_for_checkpoint(self) -> None:
        """Until the high watermarks of the checkpoint are the ends of the partitions."""
        ends = end_offsets(self.broker.bootstrap, self.name)
        path = self.broker.log_dir / HIGH_WATERMARK_FILE

        def written() -> dict[TopicPartition, int]:
            return {tp: offset for tp, offset in read_offsets(str(path)).items() if tp in ends}

        eventually(written, accept=lambda offsets: offsets == ends, timeout_s=CHECKPOINT_TIMEOUT_S)


def end_offsets(bootstrap: str, topic: str) -> dict[TopicPartition, int]:
    """The high watermarks of a topic's partitions."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": "ends"})
    try:
        partitions = consumer.list_topics(topic, FLUSH_TIMEOUT_S).topics[topic].partitions
        return {
            TopicPartition(topic, number): consumer.get_watermark_offsets(
                confluent_kafka.TopicPartition(topic, number), FLUSH_TIMEOUT_S
            )[1]
            for number in partitions
        }
    finally:
        consumer.close()


@pytest.fixture(scope="module")
def topic(broker: Broker, unique: Callable[[str], str]) -> Topic:
    made = Topic(broker, unique("kafka-log"))
    made.wait_for_checkpoint()
    return made


@pytest.fixture(scope="module")
def session(spark: SparkSession) -> SparkSession:
    register(spark)
    return spark


def kafka_log(session: SparkSession, topic: Topic, **options: str) -> DataFrameReader:
    return session.read.format("kafka_log").options(topic=topic.name, includeHeaders="true", **options)


def rows_in_order(frame: DataFrame) -> list[Row]:
    return frame.select(*KAFKA_COLUMNS).orderBy("topic", "partition", "offset").collect()


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_rows_are_those_of_the_kafka_source(session: SparkSession, topic: Topic, isolation: str) -> None:
    found = kafka_log(session, topic, isolationLevel=isolation).load(str(topic.broker.log_dir))
    options = {"subscribe": topic.name, "includeHeaders": "true", "kafka.isolation.level": isolation}
    expected = rows_in_order(kafka_batch(session, topic.broker.bootstrap, **options).load())
    assert rows_in_order(found) == expected
    assert len(expected) == len(CODECS) * 20 * PARTITIONS + (8 if isolation == "read_uncommitted" else 4)
    assert found.select("partition", "segment").distinct().count() > 5


def test_time_ranges_are_those_of_the_kafka_source(session: SparkSession, topic: Topic) -> None:
    times = {
        "startingTimestamp": str(topic.begin_ms + 15 * SECOND_MS),
        "endingTimestamp": str(topic.begin_ms + 45 * SECOND_MS),
    }
    found = kafka_log(session, topic, **times).load(str(topic.broker.log_dir))
    options = {"subscribe": topic.name, "includeHeaders": "true", **times}
    expected = rows_in_order(kafka_batch(session, topic.broker.bootstrap, **options).load())
    assert rows_in_order(found) == expected
    assert len(expected) == 30 * PARTITIONS


def test_facts_of_batches_and_control_records(session: SparkSession, topic: Topic) -> None:
    from pyspark.sql import functions as F

    frame = kafka_log(session, topic, includeControl="true", partition="0").load(str(topic.broker.log_dir))
    codecs = {
        row.compression: row["count"] for row in frame.where("producerId < 0").groupBy("compression").count().collect()
    }
    assert codecs == dict.fromkeys(CODECS, 20)
    transactional = frame.where("isTransactional").orderBy("offset").collect()
    assert [(row.isControl, row.isAborted) for row in transactional] == [
        (control, aborted) for aborted in (False, True) * 2 for control in (False, False, True)
    ]
    assert [row.sequence for row in transactional if not row.isControl] == list(range(8))
    whole = frame.groupBy("batchOffset").agg(F.sum("recordSize").alias("records"), F.first("batchSize").alias("batch"))
    uncompressed = whole.join(frame.where("compression = 'none'"), "batchOffset")
    assert uncompressed.where("records + 61 != batch").count() == 0


def test_what_cannot_be_read_is_one_line(session: SparkSession, topic: Topic) -> None:
    from pyspark.errors import PySparkException

    with pytest.raises(PySparkException) as raised:
        session.read.format("kafka_log").load("/nowhere")
    assert reason(str(raised.value)) == "there is no /nowhere on this machine"
    with pytest.raises(PySparkException) as raised:
        session.read.format("kafka_log").option("topic", "nothing").load(str(topic.broker.log_dir)).count()
    assert reason(str(raised.value)) == f"topic nothing is not in {topic.broker.log_dir}"


def test_several_directories_in_a_list(session: SparkSession) -> None:
    paths = [str(CAPTURED / "clean"), str(CAPTURED / "files")]
    reader = session.read.format("kafka_log").option("topic", "captured,gzip")
    found = reader.load(paths).select("logDir").distinct().collect()
    assert sorted(row.logDir for row in found) == paths


# -- streams -------------------------------------------------------------


def test_a_stream_goes_on_from_its_checkpoint(session: SparkSession, topic: Topic, tmp_path: Path) -> None:
    options = {
        "topic": topic.name,
        "startingOffset": "earliest",
        "includeHeaders": "true",
        "beyondHighWatermark": "true",
    }

    def run() -> None:
        rows = session.readStream.format("kafka_log").options(**options).load(str(topic.broker.log_dir))
        writer = rows.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start(str(tmp_path / "output"))
        assert query.awaitTermination(JOB_TIMEOUT_S)

    run()
    first = received(session.read.parquet(str(tmp_path / "output")))
    expected = {"subscribe": topic.name, "includeHeaders": "true"}
    assert first == received(kafka_batch(session, topic.broker.bootstrap, **expected).load())
    sent = topic.send(100, 1)
    run()
    both = received(session.read.parquet(str(tmp_path / "output")))
    assert [record for record in both if record not in first] == in_order(sent)
    assert len(both) == len(first) + len(sent)


class Follower:
    """A process with a streaming query: the topic from its beginning to Parquet files, each record once."""

    def __init__(self, topic: Topic, directory: Path) -> None:
        self.topic = topic
        self.output = directory / "output"
        command = [sys.executable, "-m", "tests.support.spark.log_stream", str(topic.broker.log_dir)]
        command += [topic.name, str(self.output), str(directory / "checkpoint"), str(directory / "spark")]
        environment = {"PYTHONPATH": str(REPOSITORY)}
        self._process = ManagedProcess(command, directory / "stream.log", cwd=directory, env=environment)

    def start(self) -> None:
        self._process.start()

    def wait_for_batch(self) -> None:
        self._process.wait_for_line("^batch", JOB_TIMEOUT_S)

    def kill(self) -> None:
        """SIGKILL to Python, its workers, and the JVM, if they run."""
        if self._process.is_running:
            kill_tree(self._process)


@pytest.fixture
def follower(broker: Broker, unique: Callable[[str], str], tmp_path: Path) -> Iterator[Follower]:
    made = Follower(Topic(broker, unique("kafka-log-stream")), tmp_path)
    yield made
    made.kill()


def test_a_stream_that_is_killed_goes_on_and_finds_new_partitions(session: SparkSession, follower: Follower) -> None:
    topic, broker = follower.topic, follower.topic.broker
    follower.start()
    follower.wait_for_batch()
    follower.kill()
    for first in range(200, 230, 5):
        topic.send(first, 5)
    Admin(broker.bootstrap).create_partitions(topic.name, PARTITIONS + 1)
    last = send(broker.bootstrap, topic.name, [Outgoing(value=b"new", partition=PARTITIONS)])
    topic.wait_for_checkpoint()
    options = {"subscribe": topic.name, "includeHeaders": "true"}
    expected = received(kafka_batch(session, broker.bootstrap, **options).load())
    assert last[0] in expected
    follower.start()

    def rows() -> list[Sent]:
        return received(session.read.parquet(str(follower.output)))

    eventually(lambda: len(rows()), accept=lambda count: count >= len(expected), timeout_s=JOB_TIMEOUT_S)
    follower.kill()
    assert rows() == expected


def test_a_directory_whose_broker_is_killed_is_read_on(
    session: SparkSession, new_broker: Callable[..., Broker], tmp_path: Path
) -> None:
    """The broker dies while it appends and a stream follows; what it had half written is no row, then and later."""
    broker = new_broker()
    name = Admin(broker.bootstrap).create_topic("killed", PARTITIONS, {"segment.bytes": "200000"})
    options = {"topic": name, "includeHeaders": "true", "beyondHighWatermark": "true"}
    stream = session.readStream.format("kafka_log").options(**options, startingOffset="earliest")
    writer = stream.load(str(broker.log_dir)).writeStream.format("parquet")
    writer = writer.option("checkpointLocation", str(tmp_path / "checkpoint"))
    query = writer.trigger(processingTime="100 milliseconds").start(str(tmp_path / "output"))
    producer = BackgroundProducer(broker.bootstrap, name, PARTITIONS, per_second=1_000)
    producer.start()
    try:
        eventually(lambda: len(producer.sent), accept=lambda count: count > 500, timeout_s=JOB_TIMEOUT_S)
        eventually(lambda: query.lastProgress, accept=lambda found: found is not None, timeout_s=JOB_TIMEOUT_S)
        broker.kill()
        left = received(session.read.format("kafka_log").options(**options).load(str(broker.log_dir)))
        acknowledged = len(producer.sent)
        broker.start()
        eventually(lambda: len(producer.sent), accept=lambda count: count > acknowledged + 500, timeout_s=JOB_TIMEOUT_S)
    finally:
        sent = producer.stop()
    expected = received(kafka_batch(session, broker.bootstrap, subscribe=name, includeHeaders="true").load())
    assert set(sent) <= set(expected)
    assert set(sent[:acknowledged]) <= set(left) <= set(expected)

    def rows() -> list[Sent]:
        return received(session.read.parquet(str(tmp_path / "output")))

    eventually(lambda: len(rows()), accept=lambda count: count >= len(expected), timeout_s=JOB_TIMEOUT_S)
    query.stop()
    assert rows() == expected


# -- the page ------------------------------------------------------------

PAGE = REPOSITORY / "docs" / "kafka-log.md"
EXAMPLE = re.compile(r"^```python\n(.*?)^```\n\n```\n(.*?)^```\n", re.MULTILINE | re.DOTALL)


def test_the_examples_of_the_page(session: SparkSession, capsys: pytest.CaptureFixture[str]) -> None:
    """Each example prints what stands below it, with a directory that Apache Kafka wrote."""
    examples = EXAMPLE.findall(PAGE.read_text())
    assert len(examples) == 2
    names = {"spark": session}
    for code, printed in examples:
        exec(code.replace("/var/lib/kafka/data", str(CAPTURED / "clean")), names)
        assert capsys.readouterr().out.strip() == printed.strip()
