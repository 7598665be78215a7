"""Plans a read: the range of each replica, and one task for each segment that has a part of it.

A plan is a snapshot: for each replica the offsets [start, end) that were readable when it was made. What is appended
later is not read; what is compacted meanwhile may be missing, as for a consumer; what retention removes is lost.

Readable is what a consumer would be given: up to the high watermark of the last checkpoint (a broker writes it every
5 s, `replica.high.watermark.checkpoint.interval.ms`), with read_committed up to the first open transaction.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from spark_jobs.kafka_log.errors import DataLossError, KafkaLogError, warn
from spark_jobs.kafka_log.log_bounds import LogBounds
from spark_jobs.kafka_log.log_dirs import Replica, cannot_read, find_replicas
from spark_jobs.kafka_log.options import EARLIEST, LATEST, Boundary, ReadOptions
from spark_jobs.kafka_log.segments import Listing, list_segments
from spark_jobs.kafka_log.transactions import TransactionFiles

MAX_LISTINGS = 5
"""How often a replica is looked at anew because a file was renamed between a listing and a look into it."""


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """The offsets [start, end) of a replica, which one segment had when they were planned."""

    replica: Replica
    start: int
    end: int


def plan(options: ReadOptions) -> list[SegmentTask]:
    """The tasks of a batch. Raises: KafkaLogError."""
    tasks: list[SegmentTask] = []
    for replica in find_replicas(options):
        readable = readable_range(replica, options)
        if readable is None:
            continue
        listing, start, end = readable
        bounds = LogBounds(listing, options)
        first = _resolve(options.starting, replica, bounds, start, end)
        if first < start:
            _below_start(replica, first, start, options)
        last = _resolve(options.ending, replica, bounds, start, end)
        tasks += segment_tasks(replica, listing, max(first, start), min(last, end))
    return tasks


def readable_range(replica: Replica, options: ReadOptions) -> tuple[Listing, int, int] | None:
    """The segments of a replica, and what can be read of them; None if it is gone.

    Raises: KafkaLogError if it cannot be read.
    """
    for _ in range(MAX_LISTINGS):
        listing = list_segments(replica)
        if listing is None:
            return None
        start = max(listing.first_offset or 0, replica.checkpointed_start)
        try:
            end = replica.high_watermark
            if end is None or options.beyond_high_watermark:
                end = LogBounds(listing, options).end()
            if options.read_committed:
                end = TransactionFiles(replica, listing, options).last_stable_offset(start, end)
        except FileNotFoundError:
            continue
        except OSError as error:
            raise KafkaLogError(cannot_read(replica.path, error)) from None
        return listing, start, max(start, end)
    raise KafkaLogError(f"{replica.path} changes too fast to be read")


def segment_tasks(replica: Replica, listing: Listing, start: int, end: int) -> Iterator[SegmentTask]:
    """One task for each segment with offsets in [start, end)."""
    for segment, behind in zip(listing.live, (*listing.live[1:], None), strict=False):
        first = max(start, segment.base_offset)
        last = end if behind is None else min(end, behind.base_offset)
        if first < last:
            yield SegmentTask(replica, first, last)


def _resolve(boundary: Boundary, replica: Replica, bounds: LogBounds, start: int, end: int) -> int:
    if boundary.timestamp_ms is not None:
        found = bounds.offset_for_time(boundary.timestamp_ms, start)
        return end if found is None else found
    offset = boundary.of(replica.topic, replica.partition)
    match offset:
        case _ if offset == EARLIEST:
            return start
        case _ if offset == LATEST:
            return end
    is_named = (replica.topic, replica.partition) in boundary.offsets
    return offset if is_named else max(start, offset)


def _below_start(replica: Replica, first: int, start: int, options: ReadOptions) -> None:
    line = f"{replica.name}: the offsets {first} to {start - 1} are gone: its log begins at {start}"
    if options.fail_on_data_loss:
        raise DataLossError(f"{line} (failOnDataLoss=false goes on without them)")
    warn(line)
