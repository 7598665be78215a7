"""Spark's kafka source, batch and streaming, against a real broker: every option for the beginning and the end."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

import pytest

from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.spark.pieces import MARKS, Outgoing, Sent, in_order, kafka_batch, kafka_stream, received, send

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming import DataStreamReader

pytest_plugins = ["tests.support.spark.session"]
pytestmark = MARKS

PARTITIONS = 3
PER_PARTITION = 40
SECOND_MS = 1_000
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
QUERY_NUMBERS = count()


class Topic:
    """A topic of three partitions with forty records each, one a second: record n of a partition is n seconds after
    `begin_ms`."""

    def __init__(self, broker: Broker, name: str) -> None:
        self.name = name
        self.begin_ms = int(time.time() - 3_600) * SECOND_MS
        Admin(broker.bootstrap).create_topic(name, PARTITIONS)
        self.sent = in_order(
            send(
                broker.bootstrap,
                name,
                (
                    Outgoing(
                        partition=partition,
                        key=None if number % 5 == 0 else b"key %d" % number,
                        value=None if number % 7 == 3 else b"value %d of %d" % (number, partition),
                        headers=(("number", b"%d" % number), ("none", None), ("number", b"")) if number % 2 else (),
                        timestamp_ms=self.begin_ms + number * SECOND_MS,
                    )
                    for number in range(PER_PARTITION)
                    for partition in range(PARTITIONS)
                ),
            )
        )

    def select(self, keep: Callable[[Sent], bool]) -> list[Sent]:
        return [without_headers(record) for record in self.sent if keep(record)]

    def per_partition(self, *values: int) -> str:
        """Spark's JSON for a number per partition."""
        return json.dumps({self.name: {str(partition): value for partition, value in enumerate(values)}})


def without_headers(record: Sent) -> Sent:
    return Sent(
        topic=record.topic,
        partition=record.partition,
        offset=record.offset,
        timestamp_ms=record.timestamp_ms,
        key=record.key,
        value=record.value,
    )


@pytest.fixture(scope="module")
def topic(broker: Broker, unique: Callable[[str], str]) -> Topic:
    return Topic(broker, unique("spark-source"))


def test_batch_reads_every_column_of_every_record(spark: SparkSession, broker: Broker, topic: Topic) -> None:
    frame = kafka_batch(spark, broker.bootstrap, subscribe=topic.name, includeHeaders="true").load()

    assert received(frame) == topic.sent
    assert {row.timestampType for row in frame.select("timestampType").distinct().collect()} == {0}


def test_batch_reads_between_two_offsets_of_each_partition(spark: SparkSession, broker: Broker, topic: Topic) -> None:
    frame = kafka_batch(
        spark,
        broker.bootstrap,
        subscribe=topic.name,
        startingOffsets=topic.per_partition(5, -2, 39),
        endingOffsets=topic.per_partition(25, 7, -1),
    ).load()

    between = {0: range(5, 25), 1: range(7), 2: range(39, 40)}
    assert received(frame) == topic.select(lambda record: record.offset in between[record.partition])


def test_batch_reads_between_two_times(spark: SparkSession, broker: Broker, topic: Topic) -> None:
    frame = kafka_batch(
        spark,
        broker.bootstrap,
        subscribe=topic.name,
        startingOffsetsByTimestamp=topic.per_partition(*(topic.begin_ms + n * SECOND_MS for n in (10, 11, 12))),
        endingOffsetsByTimestamp=topic.per_partition(*(topic.begin_ms + n * SECOND_MS - 1 for n in (20, 30, 999))),
    ).load()

    between = {0: range(10, 20), 1: range(11, 30), 2: range(12, 40)}
    assert received(frame) == topic.select(lambda record: record.offset in between[record.partition])


def test_batch_reads_from_one_time_on(spark: SparkSession, broker: Broker, topic: Topic) -> None:
    frame = kafka_batch(
        spark,
        broker.bootstrap,
        subscribe=topic.name,
        startingTimestamp=str(topic.begin_ms + 35 * SECOND_MS),
        endingTimestamp=str(topic.begin_ms + 37 * SECOND_MS),
    ).load()

    assert received(frame) == topic.select(lambda record: record.offset in range(35, 37))


def test_batch_reads_the_assigned_partitions_only(spark: SparkSession, broker: Broker, topic: Topic) -> None:
    frame = kafka_batch(spark, broker.bootstrap, assign=json.dumps({topic.name: [0, 2]})).load()

    assert received(frame) == topic.select(lambda record: record.partition != 1)


def test_batch_splits_a_partition_among_tasks(spark: SparkSession, broker: Broker, topic: Topic) -> None:
    frame = kafka_batch(spark, broker.bootstrap, subscribe=topic.name, minPartitions="9").load()

    assert frame.rdd.getNumPartitions() == 9
    assert received(frame) == topic.select(lambda record: True)


def test_batch_reads_the_topics_that_match_a_pattern(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str]
) -> None:
    stem = unique("spark-pattern")
    for name in ("a", "b"):
        Admin(broker.bootstrap).create_topic(f"{stem}.{name}")
        send(broker.bootstrap, f"{stem}.{name}", [Outgoing(value=name.encode())])
    Admin(broker.bootstrap).create_topic(f"other-{stem}")
    send(broker.bootstrap, f"other-{stem}", [Outgoing(value=b"other")])

    frame = kafka_batch(spark, broker.bootstrap, subscribePattern=rf"{stem}\..*").load()

    assert [(record.topic, record.value) for record in received(frame)] == [(f"{stem}.a", b"a"), (f"{stem}.b", b"b")]


def test_batch_reads_every_codec_and_large_records(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str]
) -> None:
    name = Admin(broker.bootstrap).create_topic(unique("spark-codecs"))
    sent: list[Sent] = []
    for codec in CODECS:
        values = [codec.encode() * 10, bytes(range(256)) * 1_500]
        sent += send(broker.bootstrap, name, [Outgoing(value=value) for value in values], **{"compression.type": codec})

    assert received(kafka_batch(spark, broker.bootstrap, subscribe=name).load()) == sent


class Stream:
    """A streaming query into memory."""

    def __init__(self, spark: SparkSession, reader: DataStreamReader, **trigger: str | bool) -> None:
        self._spark = spark
        self._name = f"stream_{next(QUERY_NUMBERS)}"
        self._writer = reader.load().writeStream.format("memory").queryName(self._name).trigger(**trigger)

    def __enter__(self) -> Stream:
        self.query = self._writer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.query.stop()

    def records(self) -> list[Sent]:
        """What it has read when it has read all there is."""
        self.query.processAllAvailable()
        return received(self._spark.table(self._name))


@pytest.fixture
def stream(spark: SparkSession, broker: Broker) -> Callable[..., Stream]:
    return lambda trigger=None, **options: Stream(
        spark, kafka_stream(spark, broker.bootstrap, **options), **(trigger or {"processingTime": "0 seconds"})
    )


def test_stream_from_earliest_goes_on_with_what_is_produced_meanwhile(
    stream: Callable[..., Stream], broker: Broker, unique: Callable[[str], str]
) -> None:
    topic = Topic(broker, unique("spark-stream"))
    with stream(subscribe=topic.name, startingOffsets="earliest", includeHeaders="true") as running:
        assert running.records() == topic.sent
        more = send(broker.bootstrap, topic.name, [Outgoing(value=b"more", partition=p) for p in range(PARTITIONS)])
        assert running.records() == in_order(topic.sent + more)


def test_stream_from_latest_reads_only_what_comes_after_its_start(
    stream: Callable[..., Stream], broker: Broker, unique: Callable[[str], str]
) -> None:
    topic = Topic(broker, unique("spark-latest"))
    with stream(subscribe=topic.name, startingOffsets="latest") as running:
        assert running.records() == []
        more = send(broker.bootstrap, topic.name, [Outgoing(value=b"more", partition=1)])
        assert running.records() == more


def test_stream_from_offsets_of_each_partition(stream: Callable[..., Stream], topic: Topic) -> None:
    with stream(subscribe=topic.name, startingOffsets=topic.per_partition(30, -2, -1)) as running:
        first = {0: 30, 1: 0, 2: PER_PARTITION}
        assert running.records() == topic.select(lambda record: record.offset >= first[record.partition])


def test_stream_from_times_of_each_partition(stream: Callable[..., Stream], topic: Topic) -> None:
    times = topic.per_partition(*(topic.begin_ms + n * SECOND_MS for n in (1, 38, 999)))
    with stream(
        subscribe=topic.name, startingOffsetsByTimestamp=times, startingOffsetsByTimestampStrategy="latest"
    ) as running:
        first = {0: 1, 1: 38, 2: PER_PARTITION}
        assert running.records() == topic.select(lambda record: record.offset >= first[record.partition])


def test_stream_reads_no_more_than_it_may_in_a_batch(stream: Callable[..., Stream], topic: Topic) -> None:
    with stream(
        trigger={"availableNow": True}, subscribe=topic.name, startingOffsets="earliest", maxOffsetsPerTrigger="50"
    ) as running:
        assert running.query.awaitTermination(60)
        sizes = [progress["numInputRows"] for progress in running.query.recentProgress if progress["numInputRows"]]
        assert running.records() == topic.select(lambda record: True)

    assert len(sizes) >= 3
    assert max(sizes) <= 50


def test_stream_finds_new_partitions_and_new_topics_that_match(
    stream: Callable[..., Stream], broker: Broker, unique: Callable[[str], str]
) -> None:
    admin, stem = Admin(broker.bootstrap), unique("spark-grows")
    admin.create_topic(f"{stem}.a")
    sent = send(broker.bootstrap, f"{stem}.a", [Outgoing(value=b"first")])
    options = {"subscribePattern": rf"{stem}\..*", "startingOffsets": "earliest", "kafka.metadata.max.age.ms": "500"}
    with stream(**options) as running:
        assert running.records() == sent
        admin.create_partitions(f"{stem}.a", 2)
        sent += send(broker.bootstrap, f"{stem}.a", [Outgoing(value=b"second", partition=1)])
        admin.create_topic(f"{stem}.b")
        sent += send(broker.bootstrap, f"{stem}.b", [Outgoing(value=b"third")])
        assert running.records() == sent


def test_stream_goes_on_when_the_broker_was_killed_and_is_back(
    spark: SparkSession, new_broker: Callable[..., Broker]
) -> None:
    broker = new_broker()
    topic = Topic(broker, "killed")
    reader = kafka_stream(spark, broker.bootstrap, subscribe=topic.name, startingOffsets="earliest")
    with Stream(spark, reader, processingTime="0 seconds") as running:
        assert running.records() == topic.select(lambda record: True)
        broker.kill()
        broker.start()
        more = send(broker.bootstrap, topic.name, [Outgoing(value=b"more", partition=p) for p in range(PARTITIONS)])
        assert running.records() == in_order(topic.select(lambda record: True) + more)


def test_stream_reads_the_assigned_partition_only(stream: Callable[..., Stream], topic: Topic) -> None:
    with stream(assign=json.dumps({topic.name: [2]}), startingOffsets="earliest") as running:
        assert running.records() == topic.select(lambda record: record.partition == 2)


def test_deleted_records_end_the_query_unless_their_loss_is_allowed(
    stream: Callable[..., Stream], broker: Broker, unique: Callable[[str], str]
) -> None:
    from confluent_kafka import TopicPartition
    from pyspark.errors import StreamingQueryException

    topic = Topic(broker, unique("spark-loss"))
    options = {"subscribe": topic.name, "startingOffsets": topic.per_partition(3, 0, 0)}
    admin = Admin(broker.bootstrap)
    for done in admin.client.delete_records([TopicPartition(topic.name, 0, 10)]).values():
        done.result(30)

    with (
        stream(**options) as failing,
        pytest.raises(StreamingQueryException, match=r"data may have been lost|DATA_LOSS"),
    ):
        failing.records()
    with stream(**options, failOnDataLoss="false") as tolerant:
        assert tolerant.records() == topic.select(lambda record: record.partition > 0 or record.offset >= 10)
