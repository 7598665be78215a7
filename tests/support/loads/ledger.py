"""The records that brokers have acknowledged on one log directory, and the check that all of them are still there.

`Ledger.write` sends a broker records of every kind; `Ledger.check` reads everything through a client and compares it,
record by record: offset, timestamp, key, value and headers.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import confluent_kafka
from confluent_kafka.admin import ConfigResource

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.primitives import uuid_to_text
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.record import SimpleRecord
from tests.support.admin import ADMIN_TIMEOUT_S, Admin
from tests.support.broker import Broker
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

Headers = tuple[tuple[str, bytes | None], ...]
Content = tuple[int, bytes | None, bytes | None, Headers]
"""Timestamp, key, value, headers."""

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
SEGMENTED: Final = {"segment.bytes": "2000"}
TOPICS: Final[Mapping[str, Mapping[str, str]]] = {
    **dict.fromkeys(CODECS, SEGMENTED),
    "idempotent": SEGMENTED,
    "sequenced": SEGMENTED,
    "compacted": {**SEGMENTED, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"},
    "retained": {**SEGMENTED, "retention.bytes": "2500"},
    "trimmed": SEGMENTED,
    "flushed": {**SEGMENTED, "flush.messages": "1"},
}
GROUP: Final = "readers"
ROUNDS_OF_A_LEG: Final = 3
RECORDS_OF_A_ROUND: Final = 10
TIMEOUT_S: Final = 30
T0: Final = 1_700_000_000_000


@dataclass
class Sequenced:
    """An idempotent producer that outlives its brokers: it repeats its last batch to each, and then goes on."""

    producer_id: int
    sequence: int = 0
    offset: int = -1

    def produce(self, client: RawClient, sequence: int) -> int:
        """Send the batch with this sequence number; the offset it is answered with."""
        now_ms = int(time.time() * 1000)  # a producer is forgotten a day after the time in its last batch
        values = [b"sequence %d" % number for number in range(sequence, sequence + 2)]
        records = build_batch(
            [SimpleRecord(now_ms, None, value) for value in values],
            producer_id=self.producer_id,
            producer_epoch=0,
            base_sequence=sequence,
        )
        partition = {"index": 0, "records": memoryview(records)}
        topic = {"name": "sequenced", "partition_data": [partition]}
        request = build(ApiKey.PRODUCE, acks=-1, timeout_ms=10_000, topic_data=[topic])
        (answer,) = client.call(request, 9).responses[0].partition_responses
        assert answer.error_code == ErrorCode.NONE, answer
        return int(answer.base_offset)


@dataclass
class Ledger:
    """What was acknowledged: by topic and offset. `starts` are the least log starts that are possible by now."""

    records: dict[str, dict[int, Content]] = field(default_factory=lambda: {topic: {} for topic in TOPICS})
    transactional: dict[int, Content] = field(default_factory=dict)
    held_back: dict[int, Content] = field(default_factory=dict)
    """Records behind an open transaction."""
    starts: dict[str, int] = field(default_factory=lambda: {"retained": 0, "trimmed": 0})
    topic_ids: dict[str, str] = field(default_factory=dict)
    epochs: dict[str, list[str]] = field(default_factory=dict)
    producer_ids: set[int] = field(default_factory=set)
    committed: tuple[int, str] | None = None
    sequenced: Sequenced | None = None
    legs: int = 0
    random: random.Random = field(default_factory=lambda: random.Random(7))

    # Writing

    def write(self, broker: Broker) -> None:
        """The records and commits of one leg."""
        admin = Admin(broker.bootstrap)
        if not self.legs:
            for topic, config in TOPICS.items():
                admin.create_topic(topic, 1, config)
        else:
            # The directory of the deleted topic is still there when this leg ends.
            admin.delete_topic(f"born-in-leg-{self.legs - 1}")
            del self.records[f"born-in-leg-{self.legs - 1}"]
        born = admin.create_topic(f"born-in-leg-{self.legs}", 1, {"segment.bytes": "3000"})
        self.records[born] = {}
        self.legs += 1
        for codec in CODECS:
            self._produce(broker, [codec], {"compression.type": codec})
        self._produce(broker, ["compacted", "retained", "trimmed", "flushed", born], {"compression.type": "lz4"})
        self._produce(broker, ["idempotent"], {"enable.idempotence": True})
        self._produce_in_sequence(broker)
        self._produce_in_transactions(broker)
        self._produce_behind_a_transaction(broker)
        self._move_log_starts(broker, admin)
        self._commit(broker)

    def _produce(self, broker: Broker, topics: list[str], settings: dict[str, object]) -> None:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": broker.bootstrap, "linger.ms": 50, "log_level": 0, **settings}
        )
        for _ in range(ROUNDS_OF_A_LEG):
            for topic in topics:
                for _ in range(RECORDS_OF_A_ROUND):
                    self._send(producer, topic, self.records[topic])
            assert producer.flush(TIMEOUT_S) == 0

    def _send(self, producer: confluent_kafka.Producer, topic: str, kept: dict[int, Content]) -> None:
        key = b"key %d" % self.random.randrange(12)
        value = None if self.random.random() < 0.1 else b"%x" % self.random.getrandbits(600)
        timestamp = T0 + self.random.randrange(10**6)
        headers: Headers = (("h", b"%d" % len(kept)), ("null", None)) if self.random.random() < 0.3 else ()

        def delivered(error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
            assert error is None, error
            kept[message.offset()] = (timestamp, key, value, headers)

        producer.produce(topic, value, key, 0, on_delivery=delivered, timestamp=timestamp, headers=list(headers))

    def _produce_in_sequence(self, broker: Broker) -> None:
        with RawClient(broker.host, broker.port) as client:
            new_id = build(ApiKey.INIT_PRODUCER_ID, transactional_id=None, transaction_timeout_ms=60_000)
            # Without an id as long as the broker has no block of them.
            producer_id = eventually(lambda: client.call(new_id, 4).producer_id, accept=lambda number: number >= 0)
            assert producer_id not in self.producer_ids, "an id was given away twice"
            self.producer_ids.add(producer_id)
            if self.sequenced is None:
                self.sequenced = Sequenced(producer_id)
            else:
                assert self.sequenced.produce(client, self.sequenced.sequence) == self.sequenced.offset
                self.sequenced.sequence += 2
            self.sequenced.offset = offset = self.sequenced.produce(client, self.sequenced.sequence)
            assert offset == self.sequenced.sequence

    def _produce_in_transactions(self, broker: Broker) -> None:
        """Committed and aborted ones, and one that stays open until the producer's next life aborts it."""
        settings = {"transactional.id": "tx", "transaction.timeout.ms": 600_000, "log_level": 0}
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, **settings})
        producer.init_transactions(TIMEOUT_S)
        self.transactional |= self.held_back
        self.held_back = {}
        for ending in (producer.commit_transaction, producer.abort_transaction, producer.commit_transaction, None):
            producer.begin_transaction()
            kept: dict[int, Content] = {}
            self._send(producer, "transactional", kept)
            assert producer.flush(TIMEOUT_S) == 0
            if ending is not None:
                ending(TIMEOUT_S)
            if ending == producer.commit_transaction:
                self.transactional |= kept

    def _produce_behind_a_transaction(self, broker: Broker) -> None:
        """The last one is open: a reader of committed records sees nothing of this until the next leg ends it."""
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        self._send(producer, "transactional", self.held_back)
        assert producer.flush(TIMEOUT_S) == 0

    def _move_log_starts(self, broker: Broker, admin: Admin) -> None:
        """DeleteRecords into the middle of a segment, and retention that has deleted some."""
        before = max(self.records["trimmed"]) - 13
        partition = confluent_kafka.TopicPartition("trimmed", 0, before)
        admin.client.delete_records([partition])[partition].result(ADMIN_TIMEOUT_S)
        self.starts["trimmed"] = before
        consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "not-used"})
        try:
            self.starts["retained"] = eventually(
                lambda: consumer.get_watermark_offsets(confluent_kafka.TopicPartition("retained", 0), TIMEOUT_S)[0],
                accept=lambda start: start > self.starts["retained"],
            )
        finally:
            consumer.close()

    def _commit(self, broker: Broker) -> None:
        self.committed = (self.legs * 5, f"leg {self.legs}")
        consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": GROUP})
        try:
            offsets = [confluent_kafka.TopicPartition("none", 0, *self.committed)]
            consumer.commit(offsets=offsets, asynchronous=False)
        finally:
            consumer.close()

    # Checking

    def check(self, broker: Broker) -> None:
        """Everything that was acknowledged is served, and all other state of the broker has survived."""
        found = self._read(broker)
        for topic, start in self.starts.items():
            assert min(found[topic]) >= start if topic == "retained" else min(found[topic]) == start
        for topic, records in self.records.items():
            if topic == "compacted":
                assert found[topic].items() <= records.items()
                latest = {content[1]: offset for offset, content in sorted(records.items())}
                assert set(latest.values()) <= found[topic].keys()
            elif topic != "sequenced":
                first = min(found[topic])
                assert found[topic] == {at: content for at, content in records.items() if at >= first}, topic
                assert first == 0 or topic in self.starts, topic
        assert found["transactional"] == self.transactional
        assert self.sequenced is not None
        expected = [b"sequence %d" % number for number in range(self.sequenced.sequence + 2)]
        assert [value for _, _, value, _ in found["sequenced"].values()] == expected
        self._check_commits(broker)
        self._check_configs(broker)

    def _read(self, broker: Broker) -> dict[str, dict[int, Content]]:
        """Every topic from its first record to its end, as a consumer of committed records sees it."""
        topics = [*self.records, "transactional"]
        consumer = confluent_kafka.Consumer(
            {
                "bootstrap.servers": broker.bootstrap,
                "group.id": "not-used",
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "check.crcs": True,
                "fetch.wait.max.ms": 10,  # the end of a partition is told by an empty answer
            }
        )
        found: dict[str, dict[int, Content]] = {topic: {} for topic in topics}
        unfinished = set(topics)
        try:
            first = confluent_kafka.OFFSET_BEGINNING
            consumer.assign([confluent_kafka.TopicPartition(topic, 0, first) for topic in topics])
            while unfinished:
                messages = consumer.consume(1000, 0.1)
                for message in messages:
                    error = message.error()
                    if error is None:
                        headers = tuple(message.headers() or ())
                        content = (message.timestamp()[1], message.key(), message.value(), headers)
                        found[message.topic()][message.offset()] = content
                    elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
                        unfinished.discard(message.topic())
                    else:
                        assert error.retriable(), error
        finally:
            consumer.close()
        return found

    def _check_commits(self, broker: Broker) -> None:
        consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": GROUP})
        try:
            (found,) = consumer.committed([confluent_kafka.TopicPartition("none", 0)], TIMEOUT_S)
        finally:
            consumer.close()
        assert (found.offset, found.metadata) == self.committed

    def _check_configs(self, broker: Broker) -> None:
        resources = [ConfigResource(ConfigResource.Type.TOPIC, topic) for topic in TOPICS]
        admin = Admin(broker.bootstrap)
        for resource, future in admin.client.describe_configs(resources).items():
            described = {name: entry.value for name, entry in future.result(TIMEOUT_S).items()}
            assert described.items() >= TOPICS[resource.name].items()

    def check_identities(self, broker: Broker) -> None:
        """Topic ids on the wire and in the directory are the ones each topic got at its creation."""
        with RawClient(broker.host, broker.port) as client:
            topics = client.call(build(ApiKey.METADATA, topics=None), 12).topics
        ids = {topic.name: uuid_to_text(topic.topic_id) for topic in topics}
        assert {name for name in ids if name.startswith("born")} == {f"born-in-leg-{self.legs - 1}"}
        for topic, topic_id in ids.items():
            assert self.topic_ids.setdefault(topic, topic_id) == topic_id
            for path in broker.log_dir.glob(f"{topic}-[0-9]"):
                assert (path / "partition.metadata").read_text() == f"version: 0\ntopic_id: {topic_id}"

    def check_epochs(self, log_dir: Path) -> None:
        """Each leg begins a leader epoch where its first record lies; what was known of earlier ones stays."""
        for topic in CODECS:
            epochs = (log_dir / f"{topic}-0" / "leader-epoch-checkpoint").read_text().splitlines()[2:]
            known = self.epochs.get(topic, [])
            assert epochs[: len(known)] == known
            assert epochs[len(known) :] == [
                f"{leg} {leg * ROUNDS_OF_A_LEG * RECORDS_OF_A_ROUND}" for leg in range(len(known), self.legs)
            ]
            self.epochs[topic] = epochs
