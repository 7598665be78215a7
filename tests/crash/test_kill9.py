"""kill -9 during an acks=all load, twenty times: what was acknowledged is there, once, in order, at its offset.

The promise is the one of Apache Kafka: an acknowledged record survives the death of the process, because it is in the
page cache. The idempotent producer moreover never repeats a record, whatever the broker answered or failed to answer.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from tests.support.admin import Admin
from tests.support.clients import Confluent, Message
from tests.support.odradek_process import OdradekBroker

KILLS = 20
PARTITIONS = 3
DRAIN_TIMEOUT_S = 30


class Load:
    """A producer in a thread of its own that numbers its records per partition and notes each acknowledgement."""

    def __init__(self, bootstrap: str, topic: str, *, idempotent: bool) -> None:
        self.topic = topic
        self.acknowledged: dict[int, dict[int, int]] = {partition: {} for partition in range(PARTITIONS)}
        self.sent = [0] * PARTITIONS
        self.failed: list[tuple[int, int, str]] = []
        self._producer = confluent_kafka.Producer(
            {
                "bootstrap.servers": bootstrap,
                "acks": "all",
                "enable.idempotence": idempotent,
                "max.in.flight.requests.per.connection": 5 if idempotent else 1,
                "retries": 1000 if idempotent else 0,
                "linger.ms": 1,
                "batch.size": 10_000,
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
        while not self._stopping.is_set():
            for partition in range(PARTITIONS):
                number = self.sent[partition]
                self.sent[partition] += 1
                self._producer.produce(
                    self.topic,
                    b"%d" % number,
                    partition=partition,
                    on_delivery=lambda error, message, number=number: self._delivered(error, message, number),
                )
            self._producer.poll(0.001)

    def _delivered(
        self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message, number: int
    ) -> None:
        if error is None:
            self.acknowledged[message.partition()][number] = message.offset()
        else:
            self.failed.append((message.partition(), number, error.str()))

    @property
    def total(self) -> int:
        return sum(len(by_number) for by_number in self.acknowledged.values())

    def finish(self) -> None:
        self._stopping.set()
        self._thread.join(10)
        assert not self._thread.is_alive()
        assert self._producer.flush(DRAIN_TIMEOUT_S) == 0


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[OdradekBroker]:
    process = OdradekBroker(tmp_path, {"log.segment.bytes": "50000"})
    process.start()
    yield process
    process.close()


def read_all(bootstrap: str, topic: str, partition: int) -> list[int]:
    """The numbers in a partition, by offset."""
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "not-used", "enable.partition.eof": True, "log_level": 0}
    )
    numbers: list[int] = []
    try:
        consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0)])
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            for message in consumer.consume(10_000, 0.5):
                if message.error():
                    assert message.error().code() == confluent_kafka.KafkaError._PARTITION_EOF
                    return numbers
                assert message.offset() == len(numbers), "offsets have a hole"
                numbers.append(int(message.value()))
    finally:
        consumer.close()
    raise AssertionError("the end of the partition was not reached")


def check_acknowledged(load: Load, partition: int, numbers: list[int]) -> None:
    for number, offset in load.acknowledged[partition].items():
        assert offset < len(numbers), (
            f"acknowledged record {number} at {offset} is lost: the log ends at {len(numbers)}"
        )
        assert numbers[offset] == number, f"offset {offset} was answered for {number} and holds {numbers[offset]}"


def test_what_was_acknowledged_survives_twenty_kills(broker: OdradekBroker) -> None:
    rng = random.Random(20)
    admin = Admin(broker.bootstrap)
    loads = {
        name: Load(broker.bootstrap, admin.create_topic(name, PARTITIONS), idempotent=name == "idempotent")
        for name in ("idempotent", "plain")
    }
    try:
        for _ in range(KILLS):
            before = {name: load.total for name, load in loads.items()}
            deadline = time.monotonic() + 20
            while any(load.total <= before[name] for name, load in loads.items()):
                assert time.monotonic() < deadline, "no progress after a restart"
                time.sleep(0.005)
            time.sleep(rng.uniform(0, 0.4))
            broker.kill()
            broker.start()
    finally:
        for load in loads.values():
            load.finish()

    for partition in range(PARTITIONS):
        load = loads["idempotent"]
        numbers = read_all(broker.bootstrap, load.topic, partition)
        check_acknowledged(load, partition, numbers)
        assert len(set(numbers)) == len(numbers), "an idempotent producer repeated a record"
        assert numbers == sorted(numbers), "the order of the producer was not kept"
        assert load.failed == []
        assert numbers == list(range(load.sent[partition]))

        load = loads["plain"]
        numbers = read_all(broker.bootstrap, load.topic, partition)
        check_acknowledged(load, partition, numbers)
        acknowledged = [number for number in numbers if number in load.acknowledged[partition]]
        assert acknowledged == sorted(load.acknowledged[partition]), (
            "an acknowledged record is repeated or out of order"
        )
    assert min(load.total for load in loads.values()) > KILLS


def test_the_last_answer_before_the_kill_counts(broker: OdradekBroker) -> None:
    """One record, one answer, one kill, over and over: the tightest form of the promise."""
    topic = Admin(broker.bootstrap).create_topic("last")
    for number in range(5):
        assert Confluent().produce(broker.bootstrap, topic, [Message(key=None, value=b"%d" % number)]) == [number]
        broker.kill()
        broker.start()
    received = Confluent().consume(broker.bootstrap, topic, 5)
    assert [(r.offset, r.value) for r in received] == [(n, b"%d" % n) for n in range(5)]
