"""The sequences of requests that are counted, each against a whole broker without sockets.

A request comes as bytes to a connection, and its answer goes as bytes to a transport that takes everything. So the
counts have all that the broker does for a request but the event loop and the kernel.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from odradek.broker.fetch.follower_waits import SHORT_FOR_MS
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.record import SimpleRecord
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.offsets import LATEST, SpecialTimestamp
from tests.benchmarks.counts.counting import Calls, Counts, peak_bytes
from tests.benchmarks.counts.replication import FETCH_VERSION, OTHERS, Leader, follower_fetch, tell
from tests.benchmarks.counts.replication import TOPIC as REPLICATED
from tests.benchmarks.parts.bench_storage import batch_of
from tests.support.garbage import no_collection
from tests.support.in_process.connections.network import FakeOwner, Link
from tests.support.in_process.in_process_broker import InProcessBroker, in_process_broker
from tests.support.wire.requests import build

TOPIC: Final = "bench"
PARTITIONS: Final = 10
OLD_TOPIC: Final = "old"
OLD_SEGMENTS, OLD_BATCHES = 20, 10
SMALL, LARGE = (1, 100), (16, 1_000)
"""(records, bytes of each): a record alone, and a batch of 16 KB."""

CONSUMERS: Final = 40

WARM_UP: Final = 10
"""Runs that are not counted: they load modules, generate codecs and fill caches."""

RUNS: Final = 64
"""Runs that are counted: what happens once in many requests, such as an index entry, has its share."""

RUNS_MAX: Final = WARM_UP + RUNS + 10


class Peer:
    """A client with one connection to a broker."""

    def __init__(self, broker: InProcessBroker) -> None:
        owner = FakeOwner()
        owner.clock = broker.clock  # type: ignore[assignment]
        owner.handle = broker.dispatch  # type: ignore[assignment]
        self.broker = broker
        self.link = Link(owner)
        self._correlation_id = 0

    def bytes_of(self, request: Request, version: int) -> bytes:
        """The frame of a request."""
        frame = self.broker.frame(request, version)
        return len(frame).to_bytes(4, "big") + frame

    def send(self, frames: bytes) -> None:
        """The frames come in one piece; the event loop turns once."""

        async def receive() -> None:
            self.link.receive(frames)
            self.link.owner.run_soon()

        self.broker.loop.run_until_complete(receive())

    def take_answers(self) -> int:
        """How many whole answers have come since the last call. They are dropped."""
        data, count, position = self.link.wire.data, 0, 0
        while position < len(data):
            position += 4 + int.from_bytes(data[position : position + 4], "big")
            count += 1
        assert position == len(data), "half an answer"
        data.clear()
        return count

    def take_writes(self) -> int:
        """How many system calls have written to the socket since the last call."""
        count = len(self.link.wire.writers)
        self.link.wire.writers.clear()
        return count


@dataclass(frozen=True, slots=True)
class Sequence:
    """`run` makes the broker answer `requests` requests; `writes` takes the number of writes to sockets since then."""

    requests: int
    run: Callable[[], None]
    writes: Callable[[], int]


Make = Callable[[InProcessBroker], Sequence]


def one_by_one(broker: InProcessBroker, requests: Iterable[Request], version: int) -> Sequence:
    """Each request once, on one connection: for requests with a number that grows."""
    peer = Peer(broker)
    frames = iter([peer.bytes_of(request, version) for request in requests])

    def run() -> None:
        peer.send(next(frames))
        broker.settle(lambda: bool(peer.link.wire.data))  # the first read of an index is made by a thread
        assert peer.take_answers() == 1

    return Sequence(1, run, peer.take_writes)


def repeated(request: Request, version: int, *, pipelined: int = 1, has_answer: bool = True) -> Make:
    """The same request on one connection, `pipelined` frames in one read."""

    def make(broker: InProcessBroker) -> Sequence:
        peer = Peer(broker)
        frames = peer.bytes_of(request, version) * pipelined

        def run() -> None:
            peer.send(frames)
            assert peer.take_answers() == (pipelined if has_answer else 0)

        return Sequence(pipelined, run, peer.take_writes)

    return make


def produce(size: tuple[int, int], acks: int, partition: int = 0) -> Request:
    data = [{"index": partition, "records": batch_of(*size)}]
    return build(ApiKey.PRODUCE, acks=acks, timeout_ms=30_000, topic_data=[{"name": TOPIC, "partition_data": data}])


def idempotent_produce(partitions: int) -> Make:
    """One batch of 16 KB for each partition, as the Java producer sends them: with its id and sequences."""
    producer_id, (records, size) = 42, LARGE

    def make(broker: InProcessBroker) -> Sequence:
        return one_by_one(broker, map(request, range(RUNS_MAX)), 11)

    def request(number: int) -> Request:
        batch = batch_of(records, size, producer_id=producer_id, producer_epoch=0, base_sequence=number * records)
        data = [{"index": index, "records": batch} for index in range(partitions)]
        return build(ApiKey.PRODUCE, acks=-1, timeout_ms=30_000, topic_data=[{"name": TOPIC, "partition_data": data}])

    return make


def fetch(broker: InProcessBroker, offsets: list[int], **fields: int) -> Request:
    """From these offsets of the first partitions."""
    parts = [
        {"partition": index, "fetch_offset": offset, "partition_max_bytes": 1 << 20}
        for index, offset in enumerate(offsets)
    ]
    topics = [{"topic_id": broker.topic_id(TOPIC), "partitions": parts}] if offsets else []
    return build(ApiKey.FETCH, min_bytes=1, max_bytes=1 << 25, topics=topics, **fields)


def list_offsets(timestamp: int, partitions: int) -> Request:
    parts = [
        {"partition_index": index, "timestamp": timestamp, "current_leader_epoch": -1} for index in range(partitions)
    ]
    return build(ApiKey.LIST_OFFSETS, replica_id=-1, topics=[{"name": TOPIC, "partitions": parts}])


def log_of(broker: InProcessBroker, topic: str, partition: int = 0) -> UnifiedLog:
    hosted = broker.services.replica_manager.partitions.hosted(TopicPartition(topic, partition))
    assert hosted is not None
    return hosted.log


def flush(broker: InProcessBroker, log: UnifiedLog) -> None:
    """Wait until all records are on the disk: a page that is being written is read like one that is not in memory."""
    flushed: asyncio.Future[OSError | None] = broker.loop.create_future()
    log.when_flushed(log.log_end_offset, flushed.set_result)
    log.flush()
    assert broker.loop.run_until_complete(flushed) is None


def fetch_of_records(partitions: int) -> Make:
    """16 KB of records from each partition."""

    def make(broker: InProcessBroker) -> Sequence:
        for index in range(partitions):
            broker.call(produce(LARGE, -1, index), 11)
            flush(broker, log_of(broker, TOPIC, index))
        return repeated(fetch(broker, [0] * partitions, max_wait_ms=0, session_epoch=-1), 17)(broker)

    return make


def fetch_in_a_session(broker: InProcessBroker) -> Sequence:
    """A session of ten partitions without news: what a consumer sends that has read everything."""
    first = fetch(broker, [0] * PARTITIONS, max_wait_ms=0, session_epoch=0)
    session_id = int(broker.call(first, 17).session_id)  # type: ignore[attr-defined]
    assert session_id
    numbered = (
        fetch(broker, [], max_wait_ms=0, session_id=session_id, session_epoch=number) for number in range(1, RUNS_MAX)
    )
    return one_by_one(broker, numbered, 17)


def log_of_segments(broker: InProcessBroker) -> range:
    """Fill a partition with `OLD_SEGMENTS` segments of `OLD_BATCHES` batches each; the offsets of the old records.

    The timestamp of a record is its offset.
    """
    batches = OLD_SEGMENTS * OLD_BATCHES
    records, size = 64, 1_000
    segment_bytes = OLD_BATCHES * len(batch_of(records, size)) + 1
    broker.create_topic(OLD_TOPIC, configs={"segment.bytes": str(segment_bytes)})
    for first in range(0, batches * records, records):
        values = [SimpleRecord(offset, None, bytes(size)) for offset in range(first, first + records)]
        data = [{"index": 0, "records": build_batch(values)}]
        broker.call(build(ApiKey.PRODUCE, acks=1, topic_data=[{"name": OLD_TOPIC, "partition_data": data}]), 11)
    flush(broker, log_of(broker, OLD_TOPIC))
    end = batches * records
    return range(end // 2, end // 2 + 3 * RUNS_MAX, 3)


def lookup_of_a_time(broker: InProcessBroker) -> Sequence:
    """The offset of a record in the middle of a log, by its timestamp."""

    def request(offset: int) -> Request:
        parts = [{"partition_index": 0, "timestamp": offset, "current_leader_epoch": -1}]
        return build(ApiKey.LIST_OFFSETS, replica_id=-1, topics=[{"name": OLD_TOPIC, "partitions": parts}])

    return one_by_one(broker, map(request, log_of_segments(broker)), 9)


def fetch_of_an_old_record(broker: InProcessBroker) -> Sequence:
    """The batch with a record in the middle of a log."""

    def request(offset: int) -> Request:
        parts = [{"partition": 0, "fetch_offset": offset, "partition_max_bytes": 1}]
        topics = [{"topic_id": broker.topic_id(OLD_TOPIC), "partitions": parts}]
        return build(ApiKey.FETCH, min_bytes=1, max_bytes=1 << 25, max_wait_ms=0, session_epoch=-1, topics=topics)

    return one_by_one(broker, map(request, log_of_segments(broker)), 17)


def produce_for_a_waiting_fetch(broker: InProcessBroker) -> Sequence:
    """A record, and the answer to a consumer that waits for it: two requests."""
    producer, consumer = Peer(broker), Peer(broker)
    produced = producer.bytes_of(produce(SMALL, -1), 11)
    begin = log_of(broker, TOPIC).log_end_offset
    fetches = (fetch(broker, [offset], max_wait_ms=500, session_epoch=-1) for offset in range(begin, begin + RUNS_MAX))
    frames = iter([consumer.bytes_of(request, 17) for request in fetches])

    def run() -> None:
        consumer.send(next(frames))
        assert not consumer.link.wire.data
        producer.send(produced)
        assert producer.take_answers() == 1
        broker.settle(lambda: bool(consumer.link.wire.data))
        assert consumer.take_answers() == 1

    return Sequence(2, run, lambda: producer.take_writes() + consumer.take_writes())


def produce_for_many_waiting_fetches(broker: InProcessBroker) -> Sequence:
    """A record, and the answers to consumers that wait for it, each with its next fetch: `CONSUMERS` deliveries."""
    producer, consumers = Peer(broker), [Peer(broker) for _ in range(CONSUMERS)]
    produced = producer.bytes_of(produce(SMALL, -1), 11)
    begin = log_of(broker, TOPIC).log_end_offset
    fetches = (fetch(broker, [offset], max_wait_ms=500, session_epoch=-1) for offset in range(begin, begin + RUNS_MAX))
    frames = iter([producer.bytes_of(request, 17) for request in fetches])

    def run() -> None:
        frame = next(frames)
        for consumer in consumers:
            consumer.send(frame)
        producer.send(produced)
        assert producer.take_answers() == 1
        broker.settle(lambda: all(consumer.link.wire.data for consumer in consumers))
        assert all(consumer.take_answers() == 1 for consumer in consumers)

    return Sequence(CONSUMERS, run, lambda: sum(peer.take_writes() for peer in (producer, *consumers)))


def commit_of_offsets(partitions: int) -> Make:
    """By a consumer that is no member of a group."""

    def make(broker: InProcessBroker) -> Sequence:
        broker.call(build(ApiKey.FIND_COORDINATOR, coordinator_keys=["g"]), 4)
        assert broker.settle(lambda: broker.services.metadata_cache.contains("__consumer_offsets"))
        parts = [
            {"partition_index": index, "committed_offset": 42, "committed_metadata": ""} for index in range(partitions)
        ]
        topics = [{"name": TOPIC, "partitions": parts}]
        request = build(ApiKey.OFFSET_COMMIT, group_id="g", generation_id_or_member_epoch=-1, topics=topics)
        error = broker.call(request, 8).topics[0].partitions[0].error_code  # type: ignore[attr-defined]
        assert error == ErrorCode.NONE
        return repeated(request, 8)(broker)

    return make


def question_for_offsets(broker: InProcessBroker) -> Sequence:
    """For all offsets of a group: ten."""
    commit_of_offsets(PARTITIONS)(broker)
    groups = [{"group_id": "g", "topics": None}]
    return repeated(build(ApiKey.OFFSET_FETCH, groups=groups, require_stable=False), 8)(broker)


def produce_with_followers(broker: InProcessBroker) -> Sequence:
    """A record with acks=all, all that its leader does for it: two followers wait for it, get it, and ask for the next
    one.
    """
    tell(broker, leader=broker.services.broker_id)
    broker.advance(SHORT_FOR_MS)  # the waits of followers are short before
    producer, followers = Peer(broker), {broker_id: Peer(broker) for broker_id in OTHERS}
    data = [{"index": 0, "records": batch_of(*SMALL)}]
    topics = [{"name": REPLICATED, "partition_data": data}]
    produced = producer.bytes_of(build(ApiKey.PRODUCE, acks=-1, timeout_ms=30_000, topic_data=topics), 11)
    fetches = {}
    for broker_id, follower in followers.items():
        session: Any = broker.call(follower_fetch(broker_id, 0, (0, 0), max_wait_ms=0), FETCH_VERSION)
        numbered = [
            follower_fetch(broker_id, max(0, number - 1), (session.session_id, number)) for number in range(1, RUNS_MAX)
        ]
        fetches[broker_id] = iter([follower.bytes_of(request, FETCH_VERSION) for request in numbered])
        follower.send(next(fetches[broker_id]))

    def next_fetch(broker_id: int) -> None:
        """The answer comes, and the follower asks for the next record."""
        follower = followers[broker_id]
        broker.settle(lambda: bool(follower.link.wire.data))
        assert follower.take_answers() == 1
        assert not producer.link.wire.data
        follower.send(next(fetches[broker_id]))

    def run() -> None:
        producer.send(produced)
        for broker_id in followers:
            next_fetch(broker_id)
        broker.settle(lambda: bool(producer.link.wire.data))
        assert producer.take_answers() == 1

    peers = (producer, *followers.values())
    return Sequence(1, run, lambda: sum(peer.take_writes() for peer in peers))


def follow(broker: InProcessBroker) -> Sequence:
    """A record that comes from the leader, until the follower has asked for the next one."""
    leader = broker.make_link
    assert isinstance(leader, Leader)
    leader.broker = broker
    tell(broker, leader=OTHERS[0])
    assert broker.settle(lambda: leader.asked is not None)

    def run() -> None:
        leader.answer()
        assert broker.settle(lambda: leader.asked is not None)

    return Sequence(1, run, lambda: 0)


SEQUENCES: Final[dict[str, Make]] = {
    "Produce, 1 record, acks=0": repeated(produce(SMALL, 0), 11, has_answer=False),
    "Produce, 1 record, acks=1": repeated(produce(SMALL, 1), 11),
    "Produce, 1 record, acks=all": repeated(produce(SMALL, -1), 11),
    "Produce, 16 KB, acks=all": repeated(produce(LARGE, -1), 11),
    "Produce, 1 record, acks=all, five in one read": repeated(produce(SMALL, -1), 11, pipelined=5),
    "Produce, idempotent, 16 KB, acks=all": idempotent_produce(1),
    "Produce, idempotent, 6 partitions, 16 KB, acks=all": idempotent_produce(6),
    "Fetch, 16 KB": fetch_of_records(1),
    "Fetch, 6 partitions, 16 KB": fetch_of_records(6),
    "Fetch, an old record": fetch_of_an_old_record,
    "Fetch, session of 10 partitions without news": fetch_in_a_session,
    "Produce, and a Fetch that waits for it": produce_for_a_waiting_fetch,
    "Produce, and 40 Fetches that wait for it": produce_for_many_waiting_fetches,
    "Produce, 1 record, acks=all, two followers": produce_with_followers,
    "Fetch of a follower, 1 record": follow,
    "OffsetCommit, 1 partition": commit_of_offsets(1),
    "OffsetCommit, 10 partitions": commit_of_offsets(10),
    "OffsetFetch, 10 partitions": question_for_offsets,
    "Metadata, 1 topic of 10 partitions": repeated(build(ApiKey.METADATA, topics=[{"name": TOPIC}]), 12),
    "ListOffsets, latest of 1 partition": repeated(list_offsets(LATEST, 1), 9),
    "ListOffsets, latest of 10 partitions": repeated(list_offsets(LATEST, PARTITIONS), 9),
    "ListOffsets, earliest of 1 partition": repeated(list_offsets(SpecialTimestamp.EARLIEST, 1), 9),
    "ListOffsets, an old record by its time": lookup_of_a_time,
    "Heartbeat, unknown member": repeated(build(ApiKey.HEARTBEAT, group_id="g", member_id="m"), 4),
    "ApiVersions": repeated(build(ApiKey.API_VERSIONS, client_software_name="c", client_software_version="1"), 3),
}


def count(make: Make, broker: InProcessBroker) -> tuple[Counts, Calls]:
    """The counts of one request on average; the calls of all `RUNS`."""
    sequence = make(broker)
    calls = Calls()
    for _ in range(WARM_UP):
        sequence.run()
    sequence.writes()

    with no_collection():
        for _ in range(RUNS):
            calls.during(sequence.run)
    requests = RUNS * sequence.requests
    counts = Counts(
        python_calls=round(calls.python.total() / requests, 2),
        native_calls=round(calls.native.total() / requests, 2),
        system_calls=round((calls.system.total() + sequence.writes()) / requests, 2),
        peak_bytes=peak_bytes(sequence.run),
    )
    return counts, calls


@contextmanager
def broker_with_topic(path: Path) -> Iterator[InProcessBroker]:
    """A broker with an empty topic of `PARTITIONS` partitions."""
    settings = {"offsets.topic.num.partitions": "1"}
    with in_process_broker(path, settings, make_link=Leader(RUNS_MAX)) as broker:
        broker.create_topic(TOPIC, PARTITIONS)
        yield broker
