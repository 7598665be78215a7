"""Questions about topics: their records, in slices, and their partitions.

A slice is read in one turn of the event loop, and is small; the caller asks for the next one. Records are decoded by
the caller. Partitions that another broker leads are read if this broker hosts a replica.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from odradek.controller.model.topic_names import INTERNAL_TOPICS
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.segment.fetch_data import FetchIsolation
from odradek.storage.segment.file_records import FileRegion
from odradek.testing.node.questions.questions import question
from odradek.testing.observations.records import AbortedRange, Piece, end_of
from odradek.testing.observations.waits import Change

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.broker.partition.partition import Partition
    from odradek.protocol.messages.update_metadata import UpdateMetadataPartitionState
    from odradek.storage.log.unified_log import UnifiedLog
    from odradek.testing.observations.observations import ObservedBroker

Isolation: TypeAlias = Literal["read_uncommitted", "read_committed"]

SLICE_BYTES: Final = 256 * 1024
"""Of one slice of records. Reading it takes about a tenth of a millisecond."""

ISOLATIONS: Final[Mapping[str, FetchIsolation]] = {
    "read_uncommitted": FetchIsolation.HIGH_WATERMARK,
    "read_committed": FetchIsolation.TXN_COMMITTED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordsSlice:
    """Some batches of a topic. `positions` are the starts of the next slice, by partition."""

    topic_id: bytes | None
    """None: there is no such topic."""
    pieces: tuple[Piece, ...] = ()
    positions: Mapping[int, int]
    ends: Mapping[int, int] = field(default_factory=dict)
    """Where the records of each partition end now."""
    is_complete: bool = True
    """There is no more to read now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionView:
    """One partition of a topic, as this broker sees it. Offsets are -1 if this broker has no replica of it."""

    partition: int
    leader: int
    leader_epoch: int
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    log_start_offset: int = -1
    last_stable_offset: int = -1
    high_watermark: int = -1
    log_end_offset: int = -1
    size_in_bytes: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicView:
    """One topic. `configs`: the effective configs that are set at the topic, not the defaults."""

    name: str
    topic_id: bytes
    is_internal: bool
    partitions: tuple[PartitionView, ...]
    configs: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerView:
    """The state of an idempotent or transactional producer in one partition."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    transaction_start_offset: int | None
    """None while no transaction is open in the partition."""


class _Watch:
    """Subscribes a wait to the partitions of a topic. A `partition_news.Reader`: a subscription ends with the first
    change, so it is renewed before each look.
    """

    def __init__(self, broker: ObservedBroker) -> None:
        self._waits = broker.observations.waits
        self._partitions: set[Partition] = set()

    def has_news(self) -> None:
        self._waits.announce(Change.RECORDS)

    def subscribe(self, partition: Partition) -> None:
        self._partitions.add(partition)
        partition.news.subscribe(self)

    def end(self) -> None:
        for partition in self._partitions:
            partition.news.unsubscribe(self)


@question
async def topic_records(
    broker: ObservedBroker,
    *,
    topic: str,
    positions: Mapping[int, int],
    isolation: str,
    partition: int | None = None,
    start: int = 0,
    wait_s: float = 0,
) -> RecordsSlice:
    """The next slice; `start` is the position of partitions without one. With `wait_s`, wait so long at most for
    records, or for the end of the topic if it exists now.

    Raises: KafkaError, BrokerStopped.
    """
    existed = broker.services.metadata_cache.contains(topic)
    watch = _Watch(broker)

    def read() -> RecordsSlice:
        return _slice(broker, topic, positions, start, ISOLATIONS[isolation], partition)

    def look() -> RecordsSlice | None:
        for hosted in _hosted(broker, topic, partition):
            watch.subscribe(hosted)
        found = read()
        is_gone = existed and found.topic_id is None
        return found if found.pieces or is_gone or wait_s <= 0 else None

    try:
        found = await broker.observations.waits.until(look, (Change.RECORDS, Change.METADATA), wait_s)
    finally:
        watch.end()
    return found or read()


def _hosted(broker: ObservedBroker, topic: str, partition: int | None) -> Iterator[Partition]:
    states = broker.services.metadata_cache.snapshot.partitions.get(topic, {})
    for index in sorted(states) if partition is None else [partition]:
        hosted = broker.services.replica_manager.hosted(TopicPartition(topic, index))
        if hosted is not None:
            yield hosted


def _slice(
    broker: ObservedBroker,
    topic: str,
    positions: Mapping[int, int],
    first: int,
    isolation: FetchIsolation,
    partition: int | None,
) -> RecordsSlice:
    cache = broker.services.metadata_cache
    if not cache.contains(topic):
        return RecordsSlice(topic_id=None, positions=positions)
    pieces: list[Piece] = []
    following, ends = dict(positions), {}
    left, is_complete = SLICE_BYTES, True
    for hosted in _hosted(broker, topic, partition):
        log, index = hosted.log, hosted.topic_partition.partition
        if log is None:
            continue
        start = following[index] = max(positions.get(index, first), log.log_start_offset)
        end = ends[index] = log.limit_of(isolation)
        if start >= end:
            continue
        if left <= 0:
            is_complete = False
            continue
        piece = _piece(log, index, start, left, isolation)
        left -= len(piece.data)
        pieces += [piece] if piece.data else []
        following[index] = end_of(piece) if piece.data else end  # without data, the last records were compacted
        is_complete = is_complete and following[index] >= end
    return RecordsSlice(
        topic_id=cache.topic_id(topic),
        pieces=tuple(pieces),
        positions=following,
        ends=ends,
        is_complete=is_complete,
    )


def _piece(log: UnifiedLog, index: int, start: int, max_bytes: int, isolation: FetchIsolation) -> Piece:
    records = log.read(start, max_bytes, isolation, min_one_message=True).records
    data = records.read() if isinstance(records, FileRegion) else bytes(records)
    piece = Piece(partition=index, start=start, data=data)
    first = log.segments.floor(start)
    if first is None:
        return piece
    return replace(
        piece,
        aborted=tuple(
            AbortedRange(aborted.producer_id, aborted.first_offset, aborted.last_offset)
            for aborted in log.local_log.collect_aborted(start, end_of(piece), first)
        ),
        open_from={
            producer_id: producer.current_txn_first_offset
            for producer_id, producer in log.active_producers().items()
            if producer.current_txn_first_offset >= 0
        },
    )


@question
async def topics(broker: ObservedBroker, *, internal: bool) -> list[str]:
    """The names of all topics, sorted; those of the broker itself only if `internal`."""
    names = broker.services.metadata_cache.snapshot.partitions
    return sorted(name for name in names if internal or name not in INTERNAL_TOPICS)


@question
async def topic_view(broker: ObservedBroker, *, topic: str) -> TopicView:
    """Raises: KafkaError UNKNOWN_TOPIC_OR_PARTITION."""
    cache = broker.services.metadata_cache
    states = cache.snapshot.partitions.get(topic)
    if states is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no topic {topic}")
    configs = await broker.services.config_admin.topic_overrides(topic)
    return TopicView(
        name=topic,
        topic_id=cache.topic_id(topic),
        is_internal=topic in INTERNAL_TOPICS,
        partitions=tuple(
            partition_view(state, broker.services.replica_manager.hosted(TopicPartition(topic, index)))
            for index, state in sorted(states.items())
        ),
        configs=configs,
    )


def partition_view(state: UpdateMetadataPartitionState, hosted: Partition | None) -> PartitionView:
    """The partition with the offsets of our replica, if there is one."""
    view = PartitionView(
        partition=state.partition_index,
        leader=state.leader,
        leader_epoch=state.leader_epoch,
        replicas=tuple(state.replicas),
        isr=tuple(state.isr),
    )
    log = None if hosted is None else hosted.log
    if log is None:
        return view
    return replace(
        view,
        log_start_offset=log.log_start_offset,
        last_stable_offset=log.last_stable_offset,
        high_watermark=log.high_watermark,
        log_end_offset=log.log_end_offset,
        size_in_bytes=log.size,
    )


@question
async def topic_exists(broker: ObservedBroker, *, topic: str, is_wanted: bool, wait_s: float) -> bool:
    """Whether the topic exists; waits so long at most until it does, or until it does not.

    Raises: BrokerStopped.
    """
    cache = broker.services.metadata_cache

    def look() -> bool | None:
        return True if cache.contains(topic) is is_wanted else None

    await broker.observations.waits.until(look, (Change.METADATA,), wait_s)
    return cache.contains(topic)


@question
async def producers(broker: ObservedBroker, *, topic: str, partition: int) -> list[ProducerView]:
    """The producers that the log of the partition knows.

    Raises: KafkaError UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER.
    """
    log = broker.services.replica_manager.partition(TopicPartition(topic, partition)).log
    if log is None:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"This broker has no replica of {topic}-{partition}")
    return [
        ProducerView(
            producer_id=producer_id,
            producer_epoch=producer.producer_epoch,
            last_sequence=producer.last_seq,
            last_timestamp=producer.last_timestamp,
            coordinator_epoch=producer.coordinator_epoch,
            transaction_start_offset=producer.current_txn_first_offset
            if producer.current_txn_first_offset >= 0
            else None,
        )
        for producer_id, producer in sorted(log.active_producers().items())
    ]
