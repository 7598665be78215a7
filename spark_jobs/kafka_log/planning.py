"""Plans a read: the range of each replica, and one task for each segment that has a part of it.

A plan is a snapshot: for each replica the offsets [start, end) that were readable when it was made. What is appended
later is not read; what is compacted meanwhile may be missing, as for a consumer; what retention removes is lost.

Readable is what a consumer would be given: up to the high watermark of the last checkpoint (a broker writes it every
5 s, `replica.high.watermark.checkpoint.interval.ms`), with read_committed up to the first open transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from spark_jobs.kafka_log.errors import KafkaLogError, report_loss
from spark_jobs.kafka_log.log_bounds import LogBounds
from spark_jobs.kafka_log.log_dirs import Replica, cannot_read, find_replicas
from spark_jobs.kafka_log.options import EARLIEST, LATEST, Boundary, ReadOptions
from spark_jobs.kafka_log.segments import Listing, list_segments
from spark_jobs.kafka_log.transactions import TransactionFiles, TransactionProgress

MAX_LISTINGS = 5
"""How often a replica is looked at anew because a file was renamed between a listing and a look into it."""


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """The offsets [start, end) of a replica, which one segment had when they were planned."""

    replica: Replica
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Readable:
    """What can be read of a replica now: the offsets [start, end) of its listed segments."""

    replica: Replica
    listing: Listing
    start: int
    end: int


@dataclass(slots=True)
class StreamProgress:
    """What a stream has seen of a replica up to its last look."""

    end: int = 0
    """How far it could be read."""
    transactions: TransactionProgress = field(default_factory=TransactionProgress)


def plan(options: ReadOptions) -> list[SegmentTask]:
    """The tasks of a batch. Raises: KafkaLogError."""
    tasks: list[SegmentTask] = []
    for replica in find_replicas(options):
        readable = readable_now(replica, options)
        if readable is not None:
            first = boundary_offset(options.starting, readable, options)
            last = boundary_offset(options.ending, readable, options)
            tasks += segment_tasks(readable, first, min(last, readable.end), options)
    return tasks


def readable_now(replica: Replica, options: ReadOptions, progress: StreamProgress | None = None) -> Readable | None:
    """The segments of a replica, and what can be read of them; None if it is gone. `progress` is that of a stream.

    Raises: KafkaLogError if it cannot be read.
    """
    for _ in range(MAX_LISTINGS):
        listing = list_segments(replica)
        if listing is None:
            return None
        start = max(listing.first_offset or 0, replica.checkpointed_start)
        try:
            end = _end_now(replica, listing, options, progress)
            if options.read_committed:
                files = TransactionFiles(replica, listing, options)
                end = files.last_stable_offset((progress or StreamProgress()).transactions, start, end)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise KafkaLogError(cannot_read(replica.path, error)) from None
        return Readable(replica, listing, start, max(start, end))
    raise KafkaLogError(f"{replica.path} changes too fast to be read")


def _end_now(replica: Replica, listing: Listing, options: ReadOptions, progress: StreamProgress | None) -> int:
    """How far a replica can be read. Raises OSError.

    The checkpoint may still have the high watermark of a deleted topic of the same name. A batch reads up to it, and
    the offsets that the log does not have are lost. A stream would wait there for the new log to reach that offset, and
    leave out what comes before it: so the end of the log limits it. High watermarks go back for a moment when a leader
    changes; the log keeps what is committed, so the end of a stream goes back only with its log.
    """
    high_watermark = None if options.beyond_high_watermark else replica.high_watermark
    if high_watermark is not None and progress is None:
        return high_watermark
    bounds = LogBounds(replica, listing, options)
    log_end = bounds.end()
    if high_watermark is None or progress is None:
        return log_end
    high_watermark = max(high_watermark, progress.end)
    return high_watermark if bounds.is_damaged else min(high_watermark, log_end)


def segment_tasks(readable: Readable, start: int, end: int, options: ReadOptions) -> Iterator[SegmentTask]:
    """One task for each segment with offsets in [start, end). A segment that is marked as deleted is read, too, while
    its file is there and the log start was not moved.

    Raises: DataLossError if the log begins behind `start`, and that is an error.
    """
    replica, listing = readable.replica, readable.listing
    while start < end:
        segment = listing.covering(start) if start >= replica.checkpointed_start else None
        if segment is None:
            behind = min(end, max(start + 1, readable.start))
            report_loss(f"{replica.name}: the offsets {start} to {behind - 1} are gone", options)
        else:
            next_base = listing.next_base(segment)
            behind = end if next_base is None else min(end, next_base)
            yield SegmentTask(replica, start, behind)
        start = behind


def boundary_offset(boundary: Boundary, readable: Readable, options: ReadOptions) -> int:
    """The offset of a boundary. Only an offset that was given for this very partition may lie below the log start.

    Raises: KafkaLogError.
    """
    replica = readable.replica
    if boundary.timestamp_ms is not None:
        return _offset_for_time(boundary.timestamp_ms, readable, options)
    offset = boundary.of(replica.topic, replica.partition)
    if offset == EARLIEST:
        return readable.start
    if offset == LATEST:
        return readable.end
    is_named = (replica.topic, replica.partition) in boundary.offsets
    return offset if is_named else max(readable.start, offset)


def _offset_for_time(timestamp_ms: int, readable: Readable, options: ReadOptions) -> int:
    """The first offset that is not earlier; the end if all are."""
    replica, listing = readable.replica, readable.listing
    for _ in range(MAX_LISTINGS):
        try:
            found = LogBounds(replica, listing, options).offset_for_time(timestamp_ms, readable.start)
        except FileNotFoundError:
            listing = list_segments(replica) or listing
            continue
        except OSError as error:
            raise KafkaLogError(cannot_read(replica.path, error)) from None
        return readable.end if found is None else found
    raise KafkaLogError(f"{replica.path} changes too fast to be read")
