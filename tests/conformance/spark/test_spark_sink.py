"""Spark's kafka sink, batch and streaming, against a real broker: another client reads its records back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import confluent_kafka
import pytest

from tests.support.admin import Admin
from tests.support.broker import Broker
from tests.support.spark.pieces import MARKS, Headers, Outgoing, kafka_stream, send

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytest_plugins = ["tests.support.spark.session"]
pytestmark = MARKS

READ_TIMEOUT_S = 30
SCHEMA = "key BINARY, value BINARY, headers ARRAY<STRUCT<key: STRING, value: BINARY>>, partition INT, topic STRING"

Content = tuple[int, bytes | None, bytes | None, Headers]


def read_back(bootstrap: str, topic: str, count: int, partitions: int = 1) -> list[Content]:
    """The partition, key, value and headers of every record, in order of partition and offset."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "none", "enable.partition.eof": True, "enable.auto.commit": False}
    )
    records: list[Content] = []
    try:
        for partition in range(partitions):
            consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0)])
            while (message := consumer.poll(READ_TIMEOUT_S)) is not None and message.error() is None:
                headers = tuple((name, value) for name, value in message.headers() or ())
                records.append((partition, message.key(), message.value(), headers))
            assert message is not None, f"no end of partition {partition} within {READ_TIMEOUT_S} s"
            assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF, message.error()
    finally:
        consumer.close()
    assert len(records) == count
    return records


def rows(spark: SparkSession, contents: Sequence[Content], topic: str | None = None) -> DataFrame:
    """A data frame with the columns that the sink knows."""
    values = [(key, value, list(headers) or None, partition, topic) for partition, key, value, headers in contents]
    return spark.createDataFrame(values, SCHEMA).coalesce(1)


CONTENTS: list[Content] = [
    (0, b"key", b"value", ()),
    (0, None, b"no key", (("one", b"1"), ("none", None), ("one", b"again"))),
    (1, b"no value", None, ()),
    (2, b"", b"", (("empty", b""),)),
    (2, bytes(range(256)), b"large " * 50_000, ()),
]


def test_batch_write_keeps_key_value_headers_and_partition(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str]
) -> None:
    topic = Admin(broker.bootstrap).create_topic(unique("spark-write"), 3)

    frame = rows(spark, CONTENTS).drop("topic")
    options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic, "includeHeaders": "true"}
    frame.write.format("kafka").options(**options).save()

    assert read_back(broker.bootstrap, topic, len(CONTENTS), 3) == CONTENTS


def test_batch_write_sends_each_row_to_the_topic_it_names(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str]
) -> None:
    topics = [Admin(broker.bootstrap).create_topic(unique("spark-route")) for _ in range(2)]
    first: list[Content] = [(0, b"a", b"1", ()), (0, b"b", b"2", ())]
    second: list[Content] = [(0, b"c", b"3", ())]

    frame = rows(spark, first, topics[0]).union(rows(spark, second, topics[1])).drop("headers", "partition")
    frame.write.format("kafka").option("kafka.bootstrap.servers", broker.bootstrap).save()

    assert read_back(broker.bootstrap, topics[0], 2) == first
    assert read_back(broker.bootstrap, topics[1], 1) == second


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_batch_write_compresses(spark: SparkSession, broker: Broker, unique: Callable[[str], str], codec: str) -> None:
    topic = Admin(broker.bootstrap).create_topic(unique(f"spark-{codec}"))
    contents: list[Content] = [(0, b"%d" % number, b"value " * 100, ()) for number in range(50)]

    frame = rows(spark, contents).select("key", "value")
    options = {"kafka.bootstrap.servers": broker.bootstrap, "topic": topic, "kafka.compression.type": codec}
    frame.write.format("kafka").options(**options).save()

    assert read_back(broker.bootstrap, topic, len(contents)) == contents


def test_stream_from_topic_to_topic_goes_on_from_its_checkpoint(
    spark: SparkSession, broker: Broker, unique: Callable[[str], str], tmp_path: Path
) -> None:
    """The sink may write a batch twice when it fails within it; nothing fails here, so there is each record once."""
    admin = Admin(broker.bootstrap)
    source, sink = admin.create_topic(unique("spark-in"), 2), admin.create_topic(unique("spark-out"), 2)
    expected: list[Content] = []

    def produce_and_copy(start: int) -> None:
        contents: list[Content] = [
            (number % 2, b"%d" % number, b"value %d" % number, (("number", b"%d" % number),))
            for number in range(start, start + 20)
        ]
        expected.extend(contents)
        outgoing = (Outgoing(partition=p, key=key, value=value, headers=headers) for p, key, value, headers in contents)
        send(broker.bootstrap, source, outgoing)
        stream = kafka_stream(
            spark, broker.bootstrap, subscribe=source, startingOffsets="earliest", includeHeaders="true"
        ).load()
        query = (
            stream.select("key", "value", "headers", "partition")
            .writeStream.format("kafka")
            .options(**{"kafka.bootstrap.servers": broker.bootstrap, "topic": sink, "includeHeaders": "true"})
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(60)

    produce_and_copy(0)
    assert read_back(broker.bootstrap, sink, 20, 2) == sorted(expected, key=lambda content: content[0])
    produce_and_copy(20)
    assert read_back(broker.bootstrap, sink, 40, 2) == sorted(expected, key=lambda content: content[0])
