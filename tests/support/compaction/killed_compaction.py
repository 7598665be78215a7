"""kill -9, over and over, while one topic is compacted and another one retained, both under load.

Three promises: of each key of the compacted topic the last acknowledged value is there, or a later one; a deleted key
stays deleted; of the retained topic everything above the log start is there, and the log start does not fall.
"""

from __future__ import annotations

import random
import time

import confluent_kafka

from tests.support.admin import Admin
from tests.support.compaction.keyed_load import READ_TIMEOUT_S, KeyedLoad, read_to_end, watermarks
from tests.support.loads.clients import Confluent, Message
from tests.support.loads.numbered_load import PARTITIONS, Load
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.waiting import eventually

SETTINGS = {
    "log.cleaner.backoff.ms": "50",
    "log.initial.task.delay.ms": "50",
    "log.retention.check.interval.ms": "50",
    "log.flush.offset.checkpoint.interval.ms": "500",
    "log.segment.delete.delay.ms": "100",
}
COMPACTED = {
    "cleanup.policy": "compact",
    "segment.bytes": "20000",
    "min.cleanable.dirty.ratio": "0.1",
    "delete.retention.ms": "200",
}
RETAINED = {"segment.bytes": "20000", "retention.bytes": "60000"}
KILL_DURING_START = 0.25
START_S = 0.5


class Killing:
    """The broker, its loads and its promises so far."""

    def __init__(self, broker: OdradekBroker, seed: int) -> None:
        self.broker = broker
        self.rng = random.Random(seed)
        admin = Admin(broker.bootstrap)
        self.compacted = admin.create_topic("compacted", 1, COMPACTED)
        self.retained = admin.create_topic("retained", PARTITIONS, RETAINED)
        self.keyed = KeyedLoad(broker.bootstrap, self.compacted)
        self.numbered = Load(broker.bootstrap, self.retained, idempotent=True)
        self.deleted: list[bytes] = []
        self.log_starts = [0] * PARTITIONS

    def kill_once(self, number: int) -> None:
        """Wait for progress of the loads, delete a key, kill the broker, start it and check."""
        before = self.keyed.total, self.numbered.total
        eventually(lambda: self.keyed.total > before[0] and self.numbered.total > before[1], timeout_s=READ_TIMEOUT_S)
        key = b"deleted %d" % number
        messages = [Message(key=key, value=b"0 to be deleted"), Message(key=key, value=None)]
        Confluent().produce(self.broker.bootstrap, self.compacted, messages)
        self.deleted.append(key)
        time.sleep(self.rng.uniform(0, 0.6))
        self.log_starts = [max(*pair) for pair in zip(self.log_starts, self._log_starts(), strict=True)]
        promised = self.keyed.acknowledged_values()
        self.broker.kill()
        while self.rng.random() < KILL_DURING_START:
            self.broker.launch()
            time.sleep(self.rng.uniform(0, START_S))
            self.broker.kill()
        self.broker.start()
        self.check_compacted(promised)
        found = self._log_starts()
        assert all(now >= then for now, then in zip(found, self.log_starts, strict=True)), "deleted segments are back"

    def check_compacted(self, promised: dict[bytes, int]) -> None:
        records = read_to_end(self.broker.bootstrap, self.compacted)
        self.keyed.check(records, promised)
        latest = {record.key: record.value for record in records}
        assert [key for key in self.deleted if latest.get(key) is not None] == [], "a deleted key is back"

    def finish(self) -> None:
        """End the loads and check everything."""
        self.keyed.finish()
        self.numbered.finish()
        self.check_compacted(self.keyed.acknowledged_values())
        assert self.numbered.failed == []
        for partition in range(PARTITIONS):
            numbers = self._numbers(partition)
            assert list(numbers) == list(range(min(numbers), max(numbers) + 1)), "offsets have a hole"
            for number, offset in self.numbered.acknowledged[partition].items():
                assert offset < min(numbers) or numbers.get(offset) == number, f"record {number} at {offset} is lost"

    def _log_starts(self) -> list[int]:
        consumer = self._consumer()
        try:
            return [
                watermarks(consumer, confluent_kafka.TopicPartition(self.retained, partition))[0]
                for partition in range(PARTITIONS)
            ]
        finally:
            consumer.close()

    def _numbers(self, partition: int) -> dict[int, int]:
        """By offset, from the log start to the end; the loads have ended."""
        consumer = self._consumer()
        found: dict[int, int] = {}
        where = confluent_kafka.TopicPartition(self.retained, partition, confluent_kafka.OFFSET_BEGINNING)
        try:
            _, end = watermarks(consumer, where)
            consumer.assign([where])
            deadline = time.monotonic() + READ_TIMEOUT_S
            while max(found, default=-1) < end - 1:
                assert time.monotonic() < deadline, "the end of the partition was not reached"
                for message in consumer.consume(10_000, 0.2):
                    assert message.error() is None, message.error()
                    found[message.offset()] = int(message.value())
        finally:
            consumer.close()
        return found

    def _consumer(self) -> confluent_kafka.Consumer:
        return confluent_kafka.Consumer(
            {"bootstrap.servers": self.broker.bootstrap, "group.id": "not-used", "log_level": 0}
        )
