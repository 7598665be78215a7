"""librdkafka as the client: a producer that sends so many records, and a consumer that reads a topic to its end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import confluent_kafka

RECORD_BYTES: Final = 1000
FLUSH_TIMEOUT_S: Final = 120
READ_TIMEOUT_S: Final = 30


def produce(
    client: Mapping[str, Any],
    topic: str,
    partitions: int,
    records: int,
    *,
    values: Sequence[bytes] = (bytes(RECORD_BYTES),),
    keys: Sequence[bytes | None] = (None,),
) -> None:
    """Produce so many records, spread evenly; returns when everything is acknowledged.

    `client`: settings, with `bootstrap.servers`. `values`, `keys`: taken in turn.
    """
    failures: list[object] = []

    def delivered(error: confluent_kafka.KafkaError | None, _: confluent_kafka.Message) -> None:
        if error is not None:
            failures.append(error)

    producer = confluent_kafka.Producer(
        {
            "acks": "all",
            "batch.num.messages": 1_000_000,
            "linger.ms": 20,
            "queue.buffering.max.messages": 200_000,
            "delivery.report.only.error": True,
            **client,
        }
    )
    for number in range(records):
        value, key = values[number % len(values)], keys[number % len(keys)]
        while True:
            try:
                producer.produce(topic, value, key, number % partitions, delivered)
                break
            except BufferError:
                producer.poll(0.05)
    assert producer.flush(FLUSH_TIMEOUT_S) == 0, "not everything was acknowledged"
    assert not failures, failures[0]


def consume(client: Mapping[str, Any], topic: str, partitions: int, records: int) -> None:
    """Read so many records of the topic from its beginning, and close the consumer."""
    consumer = confluent_kafka.Consumer(
        {
            "group.id": "unused",
            "enable.auto.commit": False,
            "fetch.min.bytes": 1,
            "max.partition.fetch.bytes": 1 << 20,
            "queued.min.messages": 200_000,
            "check.crcs": False,
            **client,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0) for partition in range(partitions)])
    while records > 0:
        messages = consumer.consume(min(records, 10_000), READ_TIMEOUT_S)  # it waits for so many
        assert messages, f"{records} records are missing"
        assert not any(message.error() for message in messages)
        records -= len(messages)
    consumer.close()
