"""Compacted topics as clients see them, while the cleaner works ten times a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from tests.support.admin import ADMIN_TIMEOUT_S, Admin
from tests.support.broker import Broker
from tests.support.compaction.keyed_load import KeyedLoad, read_to_end
from tests.support.loads.clients import Message
from tests.support.waiting import eventually

pytestmark = pytest.mark.oracle

NewBroker = Callable[..., Broker]

SETTINGS = {
    "log.cleaner.backoff.ms": "100",
    "log.cleaner.min.cleanable.ratio": "0.01",
    "log.segment.delete.delay.ms": "1000",
    "offsets.topic.segment.bytes": "4000",
}
COMPACTED = {"cleanup.policy": "compact", "segment.bytes": "4000", "delete.retention.ms": "500"}
LOADING = (
    confluent_kafka.KafkaError.NOT_COORDINATOR,
    confluent_kafka.KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    confluent_kafka.KafkaError.COORDINATOR_NOT_AVAILABLE,
)
LONG_AGO_MS = 1_500_000_000_000
READS, CLEANINGS = 8, 3
"""How often a topic is read at least, and how often it is compacted meanwhile."""


@pytest.fixture(scope="module")
def compacting(
    make_broker: Callable[[Path, dict[str, str]], Broker], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    broker = make_broker(tmp_path_factory.mktemp("compacting"), SETTINGS)
    broker.start()
    yield broker
    log = broker.log_text()
    broker.stop()
    if broker.target == "odradek":
        assert "Traceback" not in log, log[log.index("Traceback") :][:4000]


def produce(broker: Broker, topic: str, *messages: Message) -> int:
    """Each in a batch of its own; the offset of the last."""
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": broker.bootstrap, "batch.num.messages": 1, "linger.ms": 0, "log_level": 0}
    )
    offsets: list[int] = []
    for m in messages:
        stamp = {} if m.timestamp is None else {"timestamp": m.timestamp}
        producer.produce(
            topic, m.value, m.key, partition=0, on_delivery=lambda _, sent: offsets.append(sent.offset()), **stamp
        )
    assert producer.flush(ADMIN_TIMEOUT_S) == 0
    return offsets[-1]


def fill(broker: Broker, topic: str, count: int = 60) -> int:
    """More of the same few keys, enough for a few segments."""
    return produce(broker, topic, *(Message(key=b"filler %d" % (n % 3), value=b"x" * 100) for n in range(count)))


def clean_below(broker: Broker, topic: str, partition: int = 0) -> int:
    """How far the cleaner says it is."""
    path = broker.log_dir / "cleaner-offset-checkpoint"
    lines = path.read_text().splitlines()[2:] if path.exists() else []
    return next((int(o) for t, p, o in map(str.split, lines) if (t, int(p)) == (topic, partition)), 0)


def alter(broker: Broker, kind: ConfigResource.Type, name: str, **values: str) -> None:
    changes = [
        ConfigEntry(key.replace("_", "."), value, incremental_operation=AlterConfigOpType.SET)
        for key, value in values.items()
    ]
    resource = ConfigResource(kind, name, incremental_configs=changes)
    admin = Admin(broker.bootstrap)
    [future] = admin.client.incremental_alter_configs([resource]).values()
    future.result(ADMIN_TIMEOUT_S)


def test_it_is_compacted_while_it_is_written_and_read(compacting: Broker, unique: Callable[[str], str]) -> None:
    """Every reader finds records as they were produced, in order, and the last value of each key at the end."""
    topic = Admin(compacting.bootstrap).create_topic(unique("compacted"), 1, COMPACTED)
    load = KeyedLoad(compacting.bootstrap, topic)
    cleanings = []

    def read_on() -> list[int]:
        acknowledged = load.acknowledged_values()
        cleanings.append(clean_below(compacting, topic))
        load.check(read_to_end(compacting.bootstrap, topic), acknowledged)
        return cleanings

    try:
        eventually(lambda: clean_below(compacting, topic), accept=lambda offset: offset > 100)
        eventually(read_on, accept=lambda seen: len(seen) >= READS and len(set(seen)) >= CLEANINGS)
    finally:
        load.finish()
    fill(compacting, topic)
    end = load.end
    eventually(lambda: clean_below(compacting, topic), accept=lambda offset: offset >= end)
    records = read_to_end(compacting.bootstrap, topic)
    load.check(records, load.acknowledged_values())
    keys = [record.key for record in records if record.offset < end]
    assert len(keys) == len(set(keys))


def test_a_reader_that_stands_in_the_compacted_part_goes_on(compacting: Broker, unique: Callable[[str], str]) -> None:
    topic = Admin(compacting.bootstrap).create_topic(unique("standing"), 1, COMPACTED | {"cleanup.policy": "delete"})
    produce(compacting, topic, *(Message(key=b"%d" % (n % 20), value=b"%d" % n) for n in range(100)))
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": compacting.bootstrap, "group.id": "unused", "queued.max.messages.kbytes": 1}
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 30)])
        first = consumer.consume(1, ADMIN_TIMEOUT_S)[0]
        assert (first.offset(), first.value()) == (30, b"30")
        consumer.pause([TopicPartition(topic, 0)])
        alter(compacting, ConfigResource.Type.TOPIC, topic, cleanup_policy="compact")
        fill(compacting, topic)
        eventually(lambda: clean_below(compacting, topic), accept=lambda offset: offset >= 100)
        consumer.seek(TopicPartition(topic, 0, 31))
        consumer.resume([TopicPartition(topic, 0)])
        rest = consumer.consume(20, ADMIN_TIMEOUT_S)
        assert [(m.offset(), m.value()) for m in rest] == [(n, b"%d" % n) for n in range(80, 100)]
    finally:
        consumer.close()


def test_tombstones_vanish_when_their_time_has_come(compacting: Broker, unique: Callable[[str], str]) -> None:
    """Those of one topic have an hour, those of another hardly any time."""
    values = [Message(key=b"deleted", value=b"v%d" % n) for n in range(3)]

    def deleted(name: str, retention_ms: int) -> tuple[str, int]:
        """The topic, and the offset of the tombstone."""
        settings = COMPACTED | {"delete.retention.ms": str(retention_ms)}
        topic = Admin(compacting.bootstrap).create_topic(unique(name), 1, settings)
        return topic, produce(compacting, topic, *values, Message(key=b"deleted", value=None))

    def cleaned_after_more(topic: str) -> int:
        """Every run of the cleaner needs new records."""
        fill(compacting, topic, 30)
        return clean_below(compacting, topic)

    def left(topic: str) -> list[bytes | None]:
        return [record.value for record in read_to_end(compacting.bootstrap, topic) if record.key == b"deleted"]

    kept, tombstone = deleted("kept", 3_600_000)
    once = eventually(lambda: cleaned_after_more(kept), accept=lambda offset: offset > tombstone)
    eventually(lambda: cleaned_after_more(kept), accept=lambda offset: offset > once)
    assert left(kept) == [None], "the values are gone, and whoever reads is told so"
    vanishing, _ = deleted("vanishing", 100)
    eventually(lambda: (cleaned_after_more(vanishing), left(vanishing)), accept=lambda seen: seen[1] == [])


def test_compacted_and_deleted(compacting: Broker, unique: Callable[[str], str]) -> None:
    policy = {"cleanup.policy": "compact,delete", "segment.bytes": "4000", "retention.ms": "-1"}
    topic = Admin(compacting.bootstrap).create_topic(unique("both"), 1, policy)
    messages = [Message(key=b"%d" % (n % 5), value=b"x" * 100, timestamp=LONG_AGO_MS) for n in range(100)]
    end = produce(compacting, topic, *messages) + 1
    eventually(lambda: clean_below(compacting, topic), accept=lambda offset: offset > 0)
    assert read_to_end(compacting.bootstrap, topic), "nothing has expired"
    alter(compacting, ConfigResource.Type.TOPIC, topic, retention_ms="1000")
    eventually(lambda: len(read_to_end(compacting.bootstrap, topic)), accept=lambda count: count == 0)
    consumer = confluent_kafka.Consumer({"bootstrap.servers": compacting.bootstrap, "group.id": "unused"})
    try:
        assert consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=ADMIN_TIMEOUT_S) == (end, end)
    finally:
        consumer.close()


def test_the_policy_may_change(compacting: Broker, unique: Callable[[str], str]) -> None:
    topic = Admin(compacting.bootstrap).create_topic(unique("changing"), 1, {"segment.bytes": "4000"})
    last = fill(compacting, topic)
    time.sleep(0.3)
    assert len(read_to_end(compacting.bootstrap, topic)) == last + 1
    alter(compacting, ConfigResource.Type.TOPIC, topic, cleanup_policy="compact")
    eventually(lambda: len(read_to_end(compacting.bootstrap, topic)), accept=lambda count: count < last)
    alter(compacting, ConfigResource.Type.TOPIC, topic, cleanup_policy="delete")
    before = len(read_to_end(compacting.bootstrap, topic))
    fill(compacting, topic)
    time.sleep(0.3)
    assert len(read_to_end(compacting.bootstrap, topic)) == before + 60


def test_threads_may_be_doubled_but_no_more(compacting: Broker) -> None:
    alter(compacting, ConfigResource.Type.BROKER, "0", log_cleaner_threads="2")
    with pytest.raises(KafkaException) as refused:
        alter(compacting, ConfigResource.Type.BROKER, "0", log_cleaner_threads="5")
    assert refused.value.args[0].code() == confluent_kafka.KafkaError.INVALID_REQUEST
    alter(compacting, ConfigResource.Type.BROKER, "0", log_cleaner_threads="1")


def commit_often(bootstrap: str, group: str, topic: str, count: int) -> None:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    try:
        for number in range(1, count + 1):
            consumer.commit(offsets=[TopicPartition(topic, 0, number, "note")], asynchronous=False)
    finally:
        consumer.close()


def committed(bootstrap: str, group: str, topic: str) -> tuple[int, str | None]:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 0})
    try:
        [found] = consumer.committed([TopicPartition(topic, 0)], timeout=ADMIN_TIMEOUT_S)
        return found.offset, found.metadata
    except KafkaException as error:
        if error.args[0].code() not in LOADING:  # as it is right after a start
            raise
        return -1, None
    finally:
        consumer.close()


def test_offsets_are_compacted_and_survive_a_kill(new_broker: NewBroker) -> None:
    broker = new_broker(**SETTINGS)
    topic = Admin(broker.bootstrap).create_topic("read", 1)
    groups = [f"group-{number}" for number in range(4)]
    threads = [threading.Thread(target=commit_often, args=(broker.bootstrap, group, topic, 150)) for group in groups]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    def compacted() -> list[int]:
        return [clean_below(broker, "__consumer_offsets", partition) for partition in range(4)]

    eventually(compacted, accept=lambda offsets: max(offsets) > 50)
    for ending in (broker.kill, broker.stop):
        ending()
        broker.start()
        for group in groups:
            found = eventually(
                lambda group=group: committed(broker.bootstrap, group, topic), accept=lambda found: found[0] >= 0
            )
            assert found == (150, "note")


def test_a_topic_deleted_while_it_is_compacted(new_broker: NewBroker) -> None:
    """Compaction is slowed down and finds all its work at once, so that it is in the middle. Others follow."""
    broker = new_broker(**SETTINGS, **{"log.cleaner.io.max.bytes.per.second": "300000"})
    admin = Admin(broker.bootstrap)
    topic = admin.create_topic("deleted", 1, COMPACTED | {"cleanup.policy": "delete"})
    produce(broker, topic, *(Message(key=b"%d" % n, value=b"x" * 100) for n in range(3000)))
    alter(broker, ConfigResource.Type.TOPIC, topic, cleanup_policy="compact")
    eventually(lambda: list((broker.log_dir / "deleted-0").glob("*.cleaned")))
    admin.delete_topic(topic)
    other = admin.create_topic("other", 1, COMPACTED)
    fill(broker, other)
    eventually(lambda: clean_below(broker, other), accept=lambda offset: offset > 20)
    assert not (broker.log_dir / "deleted-0").exists()
    assert clean_below(broker, topic) == 0
    broker.stop()
