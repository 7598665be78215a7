"""Lookup of offsets by timestamp, for ListOffsets.

    -1 latest          the reader's limit
    -2 earliest        the log start offset; -4 earliest local is the same without tiered storage
    -3 max timestamp   the record with the largest timestamp, the first of them
    -5 latest tiered   offset -1: there is no tiered storage
    >= 0               the first record with that timestamp or a later one

The max timestamp of a batch header may differ from its records (see `max_timestamp`); the result is always the
timestamp of a record. So any number of batches may have to be opened in vain, and each may become megabytes. On the
event loop a lookup goes in steps: in one step it reads some headers and opens one batch at most. `LongLookupError` ends
a step, with the batch if a worker process must open it. The next step is a new search from the offset behind: between
two steps the log may change in any way.

A batch that is larger than MAX_DECOMPRESSED_BYTES is not opened. Its first offset is the answer, with the max timestamp
of its header: whoever reads from there misses no record that he wants.

Kafka: UnifiedLog.fetchOffsetByTimestamp, LogSegment.findOffsetByTimestamp.
"""

from __future__ import annotations

from collections import deque
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_version import MetadataVersion
from odradek.protocol.new_tuple import new_tuple
from odradek.protocol.records.batch import LegacyBatch, view_batch
from odradek.protocol.records.errors import CorruptRecordError, DecompressedSizeError
from odradek.protocol.records.layout import (
    MAGIC_V0,
    MAGIC_V1,
    MAX_DECOMPRESSED_BYTES,
    NO_PARTITION_LEADER_EPOCH,
    NO_TIMESTAMP,
)
from odradek.protocol.records.timestamps import first_record_since, latest_record
from odradek.storage.disk.ports import WorkerError
from odradek.storage.offsets import SpecialTimestamp, TimestampAndOffset
from odradek.timer.sliced_work import Wait, waited_for

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator

    from odradek.protocol.records.batch import AnyBatch
    from odradek.storage.disk.ports import WorkerPool
    from odradek.storage.log.log_state import LogState
    from odradek.storage.segment.log_segment import LogSegment
    from odradek.storage.segment.log_segments import LogSegments


HEADERS_A_STEP: Final = 4_000
"""Batch headers that are read in one step: 4 ms."""

OPENED_RECORDS_MAX: Final = 50_000
"""Of a batch that the event loop opens: 10 ms, and twice as much for the largest timestamp."""

OPENED_BYTES_MAX: Final = 4 * 1024 * 1024
"""Of a batch that the event loop opens, decompressed: 10 ms with gzip."""

OPENED_WRAPPER_BYTES_MAX: Final = 128 * 1024
"""The same for a wrapper of an old format, whose messages may have 26 bytes: 15 ms."""

WORKERS: Final = 2
"""Worker processes that open batches at a time."""


class Opening(NamedTuple):
    """A batch that a worker process opens. `timestamp` is a time in ms, or SpecialTimestamp.MAX."""

    batch: bytes
    timestamp: int
    starting_offset: int


class OpenedBatch(NamedTuple):
    """What the worker has found in the batch."""

    found: TimestampAndOffset | None
    refusal: tuple[ErrorCode, str] | None = None
    """The arguments of a KafkaError."""


class LookupStep(NamedTuple):
    """Where a lookup goes on."""

    next_offset: int = 0
    """Everything below it has been searched."""
    opened: OpenedBatch | None = None
    """The last batch below it, if a worker has opened it."""
    leader_epoch: int = NO_PARTITION_LEADER_EPOCH
    """That of the partition in the step before. In another one the log may have been truncated."""


FIRST_STEP: Final = LookupStep()


class LongLookupError(Exception):
    """The end of a step. Not an answer for clients.

    The lookup goes on at `next_offset`, and if there is an `opening`, when a worker has opened it.
    """

    def __init__(self, next_offset: int, opening: Opening | None = None) -> None:
        super().__init__(next_offset)
        self.next_offset = next_offset
        self.opening = opening
        self.leader_epoch = NO_PARTITION_LEADER_EPOCH

    def next_step(self, opened: OpenedBatch | None = None) -> LookupStep:
        return LookupStep(self.next_offset, opened, self.leader_epoch)


def lookup_by_timestamp(
    log: LogState, timestamp: int, limit: int, step: LookupStep | None = None
) -> TimestampAndOffset | None:
    """The record or offset found, restricted to offsets below `limit`; None if there is none.

    Without a `step` the lookup may take long. With one it raises LongLookupError where the step ends.

    Raises: KafkaError UNSUPPORTED_FOR_MESSAGE_FORMAT for a time lookup in message format v0, which has no timestamps;
    UNSUPPORTED_VERSION for an unknown negative timestamp; the errors of `LogState.disk`.
    """
    if log.log_dir.failure is not None:
        log.raise_offline()
    try:
        return _lookup(log, timestamp, limit, step)
    except (CorruptRecordError, OSError) as error:
        log.raise_for("fetching offset by timestamp", error)


def _lookup(log: LogState, timestamp: int, limit: int, step: LookupStep | None) -> TimestampAndOffset | None:
    version = log.local_log.config.message_format_version
    if version.record_version == MAGIC_V0 and timestamp not in (SpecialTimestamp.LATEST, SpecialTimestamp.EARLIEST):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            "Cannot search offsets based on timestamp because message format version for partition "
            f"{log.topic_partition} is {version} which is earlier than the minimum required version "
            f"{MetadataVersion.first_of_record_version(MAGIC_V1)}",
        )
    if step is not None and step.opened is not None:
        found, refusal = step.opened
        if refusal is not None:
            raise KafkaError(*refusal)
        if found is not None or timestamp == SpecialTimestamp.MAX:
            return None if found is None or found.offset >= limit else found
    if timestamp >= 0:
        found = _first_record_since(log, timestamp, step)
        return None if found is None or found.offset >= limit else found
    match timestamp:
        case SpecialTimestamp.LATEST:
            return TimestampAndOffset(NO_TIMESTAMP, limit, log.leader_epochs.latest_epoch)
        case SpecialTimestamp.EARLIEST | SpecialTimestamp.EARLIEST_LOCAL:
            earliest = log.leader_epochs.earliest_entry
            epoch = NO_PARTITION_LEADER_EPOCH
            if earliest is not None and earliest.start_offset <= log.watermarks.log_start_offset:
                epoch = earliest.epoch
            return TimestampAndOffset(NO_TIMESTAMP, log.watermarks.log_start_offset, epoch)
        case SpecialTimestamp.LATEST_TIERED:
            return TimestampAndOffset(NO_TIMESTAMP, -1, NO_PARTITION_LEADER_EPOCH)
        case SpecialTimestamp.MAX:
            found = _record_of_max_timestamp(log, step)
        case _:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unknown timestamp {timestamp} in a lookup of offsets")
    return None if found is None or found.offset >= limit else found


def segment_of_time(segments: LogSegments, timestamp: int) -> LogSegment | None:
    """The segment that a lookup reads first; None if it reads none."""
    if timestamp == SpecialTimestamp.MAX:
        return max(segments, key=lambda segment: segment.largest.timestamp)
    if timestamp < 0:
        return None
    return segments.first_from_time(timestamp)


def _record_of_max_timestamp(log: LogState, step: LookupStep | None) -> TimestampAndOffset | None:
    """The first record of all when none has a timestamp. As in Apache Kafka, none in the message format v0, and none
    when compaction has emptied the batch with the largest timestamp.
    """
    segment = segment_of_time(log.segments, SpecialTimestamp.MAX)
    assert segment is not None, "every log has a segment"
    timestamp, offset = segment.largest
    for where in segment.records.positions(segment.offset_index.lookup(offset).position):
        if where.max_timestamp != timestamp:
            continue
        batch = segment.records.batch_at(where)
        if batch.magic == MAGIC_V0:
            return None
        return _found_in(batch, SpecialTimestamp.MAX, where.base_offset, step)
    return None


def _first_record_since(log: LogState, timestamp: int, step: LookupStep | None) -> TimestampAndOffset | None:
    segments, start_offset = log.segments, log.watermarks.log_start_offset
    others: Iterator[LogSegment] | None = None
    if step is None or step.next_offset <= start_offset:
        segment = segments.first_from_time(timestamp)
    else:
        start_offset = step.next_offset
        others = _from_time_and_offset(segments, timestamp, start_offset)
        segment = next(others, None)
    while segment is not None:
        found = _first_in_segment(segment, timestamp, start_offset, step)
        # A header with a larger max timestamp than its records must not end the search. A segment without any timestamp
        # (selected by the modification time of its file) ends it, as in Apache.
        if found is not None or segment.largest.timestamp < 0:
            return found
        others = others or islice(segments.from_time(timestamp), 1, None)
        segment = next(others, None)
    return None


def _from_time_and_offset(segments: LogSegments, timestamp: int, start_offset: int) -> Iterator[LogSegment]:
    """The ones of `from_time` that may hold the offset, or later ones."""
    first = segments.floor(start_offset)
    base_offset = 0 if first is None else first.base_offset
    return (segment for segment in segments.from_time(timestamp) if segment.base_offset >= base_offset)


def _first_in_segment(
    segment: LogSegment, timestamp: int, starting_offset: int, step: LookupStep | None
) -> TimestampAndOffset | None:
    """The first record from `starting_offset` on with a timestamp of at least `timestamp` (ms)."""
    indexed_offset = segment.time_index.lookup(timestamp).offset
    position = segment.offset_index.lookup(max(indexed_offset, starting_offset)).position
    headers_left = HEADERS_A_STEP
    for where in segment.records.positions(position):
        if where.last_offset < starting_offset:
            continue
        if where.max_timestamp >= timestamp:
            batch = segment.records.batch_at(where)
            found = _found_in(batch, timestamp, starting_offset, step)
            if found is not None:
                return found
            headers_left = 1
        if step is not None:
            headers_left -= 1
            if not headers_left:
                raise LongLookupError(where.last_offset + 1)
    return None


def _found_in(
    batch: AnyBatch, timestamp: int, starting_offset: int, step: LookupStep | None
) -> TimestampAndOffset | None:
    """The record of the batch that the lookup wants. Raises: CorruptRecordError; LongLookupError in a step, for a batch
    that would hold up the event loop.
    """
    count, most = batch.record_count, OPENED_BYTES_MAX
    if step is None:
        most = MAX_DECOMPRESSED_BYTES
    elif count is None:
        most = OPENED_WRAPPER_BYTES_MAX
    elif count > OPENED_RECORDS_MAX:
        raise _long(batch, timestamp, starting_offset)
    try:
        if timestamp == SpecialTimestamp.MAX:
            found = latest_record(batch, most)
        else:
            found = first_record_since(batch, timestamp, starting_offset, most)
    except DecompressedSizeError:
        if step is not None:
            raise _long(batch, timestamp, starting_offset) from None
        if isinstance(batch, LegacyBatch):  # its first offset is inside
            raise
        found = batch.max_timestamp, max(batch.base_offset, starting_offset)
    return None if found is None else new_tuple(TimestampAndOffset, (*found, batch.partition_leader_epoch))


def _long(batch: AnyBatch, timestamp: int, starting_offset: int) -> LongLookupError:
    return LongLookupError(batch.last_offset + 1, Opening(bytes(batch.buffer), timestamp, starting_offset))


def open_batch(opening: Opening, report: Callable[[object], None]) -> OpenedBatch:
    """Find the record in the batch; a function for a WorkerPool."""
    batch = view_batch(memoryview(opening.batch))
    try:
        found = _found_in(batch, opening.timestamp, opening.starting_offset, None)
    except CorruptRecordError as error:
        return OpenedBatch(None, (ErrorCode(error.error_code), str(error)))
    return OpenedBatch(found)


class LongLookups:
    """The batches that worker processes open, of all lookups of one broker: at most `WORKERS` at a time, the others
    wait. An open connection has one at most, and the network layer bounds those of closed ones.
    """

    __slots__ = ("_running", "_waiting", "_workers")

    def __init__(self, workers: WorkerPool) -> None:
        self._workers = workers
        self._running = 0
        self._waiting: deque[tuple[Opening, Callable[[OpenedBatch], None]]] = deque()

    def wait_for(self, opening: Opening) -> Generator[Wait, None, OpenedBatch]:
        """A step that waits until the batch is opened."""
        return waited_for(partial(self._submit, opening))

    def _submit(self, opening: Opening, done: Callable[[OpenedBatch], None]) -> None:
        self._waiting.append((opening, done))
        self._start_some()

    def _start_some(self) -> None:
        while self._waiting and self._running < WORKERS:
            opening, done = self._waiting.popleft()
            self._running += 1
            self._workers.submit(open_batch, opening, partial(self._ended, done))

    def _ended(self, done: Callable[[OpenedBatch], None], result: OpenedBatch | OSError | WorkerError) -> None:
        self._running -= 1
        self._start_some()
        if isinstance(result, OSError | WorkerError):
            result = OpenedBatch(None, (ErrorCode.UNKNOWN_SERVER_ERROR, f"A worker process ended: {result}"))
        done(result)
