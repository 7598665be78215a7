"""Deletion of records by age, by size, by DeleteRecords and with their topic, as clients and the directory see it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest
from confluent_kafka import TopicPartition

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.batch import batches
from tests.support.admin import ADMIN_TIMEOUT_S, Admin
from tests.support.broker import Broker
from tests.support.disks.replica_files import log_bytes, log_files
from tests.support.loads.clients import Confluent, Message
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import batch, build

pytestmark = pytest.mark.oracle

SHORT_DELAY_MS, LONG_DELAY_MS = 100, 3_600_000
"""Between the new name of a file that may go and its end."""
SETTINGS = {
    "log.initial.task.delay.ms": "100",
    "log.retention.check.interval.ms": "100",
    "log.segment.delete.delay.ms": str(LONG_DELAY_MS),
}
SEGMENT = {"segment.bytes": "2000"}
LONG_AGO_MS = 1_500_000_000_000
VALUE = b"v" * 100


@pytest.fixture(scope="module")
def retaining(
    make_broker: Callable[[Path, dict[str, str]], Broker], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Broker]:
    """A broker that looks for what may go ten times a second."""
    broker = make_broker(tmp_path_factory.mktemp("retaining"), SETTINGS)
    broker.start()
    yield broker
    broker.stop()


def produce(broker: Broker, topic: str, count: int, timestamp: int) -> None:
    """Ten records a batch, some batches a segment."""
    for start in range(0, count, 10):
        messages = [
            Message(key=b"%d" % number, value=VALUE, timestamp=timestamp) for number in range(start, start + 10)
        ]
        Confluent().produce(broker.bootstrap, topic, messages)


def earliest(broker: Broker, topic: str) -> int:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "unused"})
    try:
        low, _ = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=ADMIN_TIMEOUT_S)
        return int(low)
    finally:
        consumer.close()


def files(broker: Broker, topic: str, suffix: str) -> list[str]:
    return sorted(path.name for path in (broker.log_dir / f"{topic}-0").glob(f"*{suffix}"))


def test_everything_may_expire_and_offsets_go_on(retaining: Broker, unique: Callable[[str], str]) -> None:
    topic = Admin(retaining.bootstrap).create_topic(unique("aged"), 1, SEGMENT)
    produce(retaining, topic, 60, LONG_AGO_MS)
    assert earliest(retaining, topic) == 0, "nothing expires by default here"
    Admin(retaining.bootstrap).delete_topic(topic)

    topic = Admin(retaining.bootstrap).create_topic(unique("aged"), 1, SEGMENT | {"retention.ms": "1000"})
    produce(retaining, topic, 60, LONG_AGO_MS)
    eventually(lambda: earliest(retaining, topic), accept=lambda offset: offset == 60)
    # An empty segment at the log's end is left; the others go one after the other.
    eventually(lambda: files(retaining, topic, ".log"), accept=lambda names: names == [f"{60:020d}.log"])
    assert files(retaining, topic, ".deleted"), "the files stay for a while"
    produce(retaining, topic, 10, int(time.time() * 1000) + 3_600_000)
    assert [r.offset for r in Confluent().consume(retaining.bootstrap, topic, 10, offset=60)] == list(range(60, 70))
    assert earliest(retaining, topic) == 60


def test_expired_files_vanish(retaining: Broker, unique: Callable[[str], str]) -> None:
    expiring = {"retention.ms": "1000", "file.delete.delay.ms": str(SHORT_DELAY_MS)}
    topic = Admin(retaining.bootstrap).create_topic(unique("vanishing"), 1, SEGMENT | expiring)
    produce(retaining, topic, 60, LONG_AGO_MS)
    eventually(lambda: files(retaining, topic, ".log"), accept=lambda names: names == [f"{60:020d}.log"])
    eventually(lambda: files(retaining, topic, ".deleted"), accept=lambda names: not names)


def test_size_keeps_what_was_asked_for(retaining: Broker, unique: Callable[[str], str]) -> None:
    topic = Admin(retaining.bootstrap).create_topic(unique("sized"), 1, SEGMENT | {"retention.bytes": "4000"})
    produce(retaining, topic, 100, int(time.time() * 1000))

    segment = log_files(retaining.log_dir, topic, 0)[-1].stat().st_size  # all have one batch of the same size

    def kept() -> int:
        return log_bytes(retaining.log_dir, topic, 0)

    last = eventually(kept, accept=lambda size: size < 4000 + segment)
    assert last >= 4000, "at least retention.bytes stay, and less than a segment more"
    first = int(log_files(retaining.log_dir, topic, 0)[0].stem)
    assert first > 0
    eventually(lambda: earliest(retaining, topic), accept=lambda offset: offset == first)
    received = Confluent().consume(retaining.bootstrap, topic, 100 - first, offset=first)
    assert [r.offset for r in received] == list(range(first, 100))


def test_deleted_records_take_their_segments_along(retaining: Broker, unique: Callable[[str], str]) -> None:
    admin = Admin(retaining.bootstrap)
    topic = admin.create_topic(unique("deleted"), 1, SEGMENT)
    produce(retaining, topic, 60, LONG_AGO_MS)
    [future] = admin.client.delete_records([TopicPartition(topic, 0, 35)]).values()
    assert future.result(ADMIN_TIMEOUT_S).low_watermark == 35

    def bases() -> list[int]:
        return [int(name.removesuffix(".log")) for name in files(retaining, topic, ".log")]

    left = eventually(bases, accept=lambda found: found[1] > 35)  # one segment after the other goes
    assert left[0] <= 35, "the segment that holds the log start stays"
    assert earliest(retaining, topic) == 35


def test_a_topic_deleted_while_it_is_read(retaining: Broker, unique: Callable[[str], str]) -> None:
    """An answer under way is finished from the renamed directory; afterwards the topic is gone and its name free."""
    admin = Admin(retaining.bootstrap)
    topic = admin.create_topic(unique("read"), 1)
    large = batch(bytes(range(256)) * 2000)
    with RawClient(retaining.host, retaining.port) as producer:
        for _ in range(20):
            partition = {"index": 0, "records": large}
            topic_data = [{"name": topic, "partition_data": [partition]}]
            answer = producer.call(build(ApiKey.PRODUCE, acks=1, timeout_ms=5000, topic_data=topic_data), 9)
            assert answer.responses[0].partition_responses[0].error_code == 0  # type: ignore[attr-defined]
    fetch = build(
        ApiKey.FETCH,
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=2**30,
        session_epoch=-1,
        topics=[{"topic": topic, "partitions": [{"partition": 0, "partition_max_bytes": 2**30}]}],
    )
    with RawClient(retaining.host, retaining.port) as reader:
        reader.send(fetch, 11)
        admin.delete_topic(topic)
        eventually(lambda: list(retaining.log_dir.glob(f"{topic}-0.*-delete")))
        found = reader.receive(ApiKey.FETCH, 11).responses[0].partitions[0]  # type: ignore[attr-defined]
        assert found.error_code == 0
        read = list(batches(memoryview(found.records)))
        assert [each.is_valid() for each in read] == [True] * 20
        gone = reader.call(fetch, 11).responses[0].partitions[0]  # type: ignore[attr-defined]
        assert gone.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    admin.create_topic_again(topic)
    produce(retaining, topic, 10, LONG_AGO_MS)
    assert earliest(retaining, topic) == 0
    assert [r.offset for r in Confluent().consume(retaining.bootstrap, topic, 10)] == list(range(10))


def test_a_deleted_topic_vanishes(new_broker: Callable[..., Broker]) -> None:
    """Its directory has the delay of the broker, whatever that of the topic is."""
    broker = new_broker(**SETTINGS | {"log.segment.delete.delay.ms": str(SHORT_DELAY_MS)})
    admin = Admin(broker.bootstrap)
    topic = admin.create_topic("deleted", 1, {"file.delete.delay.ms": str(LONG_DELAY_MS)})
    produce(broker, topic, 10, LONG_AGO_MS)
    admin.delete_topic(topic)
    eventually(lambda: list(broker.log_dir.glob(f"{topic}-0*")), accept=lambda paths: not paths)
