"""A load on a compacted topic: few keys, each written over and over with growing numbers."""

from __future__ import annotations

import threading
import time

import confluent_kafka

from tests.support.loads.clients import CREATE_TIME, Received
from tests.support.waiting import eventually

KEYS = 10
DRAIN_TIMEOUT_S = 30
READ_TIMEOUT_S = 30
NOT_YET_KNOWN = (
    confluent_kafka.KafkaError._UNKNOWN_PARTITION,
    confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART,
    confluent_kafka.KafkaError.LEADER_NOT_AVAILABLE,
    confluent_kafka.KafkaError.NOT_LEADER_FOR_PARTITION,
)


class KeyedLoad:
    """A producer in a thread of its own, to one partition. What it was answered is noted, by offset and by key."""

    def __init__(self, bootstrap: str, topic: str, *, pause_s: float = 0.005) -> None:
        self._topic = topic
        self._pause_s = pause_s
        self._sent: dict[int, tuple[bytes, bytes]] = {}
        """By offset, as answered."""
        self._acknowledged: dict[bytes, int] = {}
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": True,
                "retries": 1000,
                "linger.ms": 1,
                "reconnect.backoff.ms": 10,
                "reconnect.backoff.max.ms": 100,
                "message.timeout.ms": 60_000,
                "log_level": 0,
            }
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stopping.is_set():
            for index in range(KEYS):
                self._producer.produce(
                    self._topic,
                    b"%d" % number + b" padded" * 10,
                    b"key %d" % index,
                    partition=0,
                    on_delivery=self._delivered,
                )
                number += 1
            self._producer.poll(0)
            time.sleep(self._pause_s)

    def _delivered(self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        if error is None:
            if message.offset() is not None:  # a client may learn that a record is there and not where
                self._sent[message.offset()] = (message.key(), message.value())
            key, number = message.key(), number_of(message.value())
            self._acknowledged[key] = max(number, self._acknowledged.get(key, -1))

    def acknowledged_values(self) -> dict[bytes, int]:
        """The number last acknowledged for each key, as of now."""
        return dict(self._acknowledged)

    @property
    def total(self) -> int:
        return len(self._sent)

    @property
    def end(self) -> int:
        """The offset behind the last acknowledged record."""
        return max(self._sent) + 1

    def finish(self) -> None:
        self._stopping.set()
        self._thread.join(10)
        assert not self._thread.is_alive()
        assert self._producer.flush(DRAIN_TIMEOUT_S) == 0

    def check(self, records: list[Received], acknowledged: dict[bytes, int]) -> None:
        """Records read from the beginning: nothing else than was sent, in order, and of each key the number that had
        been acknowledged before reading, or a later one.
        """
        offsets = [record.offset for record in records]
        assert offsets == sorted(set(offsets))
        latest: dict[bytes | None, int] = {}
        for record in records:
            sent = self._sent.get(record.offset)
            if sent is not None:
                assert (record.key, record.value) == sent, f"offset {record.offset} was answered for another record"
            if record.key is not None and record.key.startswith(b"key "):
                number = number_of(record.value or b"")
                assert number > latest.get(record.key, -1), "an old value lies behind a younger one"
                latest[record.key] = number
        for key, number in acknowledged.items():
            assert latest.get(key, -1) >= number, f"{key!r}: {number} was acknowledged, found {latest.get(key)}"


def number_of(value: bytes) -> int:
    return int(value.split(b" ")[0])


def watermarks(consumer: confluent_kafka.Consumer, partition: confluent_kafka.TopicPartition) -> tuple[int, int]:
    """The offsets a partition begins and ends with; a broker that has just started may take a moment to know."""

    def look() -> tuple[int, int] | None:
        try:
            low, high = consumer.get_watermark_offsets(partition, timeout=READ_TIMEOUT_S)
        except confluent_kafka.KafkaException as error:
            if error.args[0].code() not in NOT_YET_KNOWN:
                raise
            return None
        return int(low), int(high)

    found = eventually(look, timeout_s=READ_TIMEOUT_S)
    assert found is not None
    return found


def read_to_end(bootstrap: str, topic: str) -> list[Received]:
    """All of partition 0, at least to the end it had at the beginning."""
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "not-used",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # the end of a partition is told by an empty answer
            "log_level": 0,
        }
    )
    partition = confluent_kafka.TopicPartition(topic, 0, confluent_kafka.OFFSET_BEGINNING)
    found: list[Received] = []
    try:
        _, end = watermarks(consumer, partition)
        consumer.assign([partition])
        deadline = time.monotonic() + READ_TIMEOUT_S
        while time.monotonic() < deadline:
            for message in consumer.consume(10_000, 0.1):
                if message.error():
                    assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF, message.error()
                    return found
                found.append(
                    Received(
                        offset=message.offset(),
                        timestamp=message.timestamp()[1],
                        timestamp_type=CREATE_TIME,
                        key=message.key(),
                        value=message.value(),
                        headers=(),
                    )
                )
            if found and found[-1].offset >= end - 1:
                return found
    finally:
        consumer.close()
    raise AssertionError("the end of the partition was not reached")
