"""What to compact, and in which portions: decisions from plain values, no I/O.

    log start ... first dirty ... first uncleanable ... active segment
    |   clean       |   cleanable     |   must stay

Clean is what earlier compactions have been through; its keys are unique. A log is compacted when its cleanable part is
large enough beside the clean one (`min.cleanable.dirty.ratio`) or has waited for `max.compaction.lag.ms`; what is
younger than `min.compaction.lag.ms` waits, and nothing behind the last stable offset is touched.

Kafka: LogCleanerManager (cleanableOffsets, maxCompactionDelay, calculateCleanableBytes), LogToClean and
Cleaner.groupSegmentsBySize.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from odradek.storage.segment.log_segment import MAX_RELATIVE_OFFSET


class DirtySegment(Protocol):
    """What is asked of a segment to find out which part of its log may be compacted. A LogSegment is one."""

    @property
    def base_offset(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def largest_timestamp(self) -> int:
        """Of its records in milliseconds, else of its file."""


SegmentT = TypeVar("SegmentT", bound=DirtySegment)


class OffsetsToClean(NamedTuple):
    """The cleanable range of a log, as far as offsets tell."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    force_update_checkpoint: bool
    """The checkpoint was not possible: it is to be set to the first dirty offset."""


class CleanableRange(NamedTuple):
    """The cleanable range of a log, at the boundary of a segment, and how much is in it."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    must_clean_now: bool
    """Something has waited for longer than max.compaction.lag.ms."""

    @property
    def total_bytes(self) -> int:
        return self.clean_bytes + self.cleanable_bytes

    @property
    def cleanable_ratio(self) -> float:
        """The part of the bytes that is cleanable; 0 for an empty log."""
        return self.cleanable_bytes / self.total_bytes if self.total_bytes else 0.0

    def is_due(self, min_cleanable_dirty_ratio: float) -> bool:
        """Whether it is worth the work, or has to be done."""
        return (self.must_clean_now and self.cleanable_bytes > 0) or self.cleanable_ratio > min_cleanable_dirty_ratio


def cleanable_offsets(
    checkpoint: int | None,
    segments: Sequence[DirtySegment],
    *,
    log_start_offset: int,
    log_end_offset: int,
    last_stable_offset: int,
    min_compaction_lag_ms: int,
    now_ms: int,
) -> OffsetsToClean:
    """The range that may be compacted. `segments` are all of the log's, the last of them active.

    The checkpoint of the last compaction is not taken if the log has since been cut at either end of it.
    """
    first_dirty = log_start_offset if checkpoint is None else checkpoint
    is_valid = log_start_offset <= first_dirty <= log_end_offset
    if not is_valid:
        first_dirty = log_start_offset
    first_uncleanable = min(last_stable_offset, segments[-1].base_offset)
    if min_compaction_lag_ms > 0:
        for segment in dirty_segments(segments, first_dirty):
            if segment.largest_timestamp > now_ms - min_compaction_lag_ms:
                first_uncleanable = min(first_uncleanable, segment.base_offset)
                break
    return OffsetsToClean(first_dirty, max(first_dirty, first_uncleanable), not is_valid)


def dirty_segments(segments: Sequence[SegmentT], first_dirty_offset: int) -> Sequence[SegmentT]:
    """The segments from the one that holds the first dirty offset to the last before the active one."""
    if first_dirty_offset >= segments[-1].base_offset:
        return ()
    first = bisect_right(segments, first_dirty_offset, key=_base_offset)
    return segments[max(0, first - 1) : -1]


def _base_offset(segment: DirtySegment) -> int:
    return segment.base_offset


def max_compaction_delay_ms(first_batch_timestamps: Iterable[int], max_compaction_lag_ms: int, now_ms: int) -> int:
    """For how long the oldest dirty segment has been overdue; 0 if it is not.

    `first_batch_timestamps` are those of the dirty segments but the active one, -1 for none.
    """
    clean_until_ms = now_ms - max(max_compaction_lag_ms, 0)
    earliest_ms = min((timestamp for timestamp in first_batch_timestamps if timestamp > 0), default=clean_until_ms)
    return max(0, clean_until_ms - earliest_ms)


def cleanable_range(
    segments: Sequence[DirtySegment], offsets: OffsetsToClean, compaction_delay_ms: int
) -> CleanableRange:
    """The range in whole segments: the one that holds the first uncleanable offset stays as it is.

    The segment that holds the first dirty offset, but does not begin there, counts as clean and as cleanable.
    """
    first_dirty = offsets.first_dirty_offset
    first_uncleanable = (*dirty_segments(segments, offsets.first_uncleanable_offset), segments[-1])[0].base_offset
    clean_bytes = sum(segment.size for segment in segments if segment.base_offset < first_dirty)
    cleanable_bytes = 0
    if first_dirty < first_uncleanable:
        cleanable_bytes = sum(
            segment.size for segment in dirty_segments(segments, first_dirty) if segment.base_offset < first_uncleanable
        )
    return CleanableRange(first_dirty, first_uncleanable, clean_bytes, cleanable_bytes, compaction_delay_ms > 0)


def is_filthier(found: CleanableRange, min_cleanable_dirty_ratio: float, filthiest: CleanableRange | None) -> bool:
    """Whether a log is due, and has a higher ratio than the filthiest of those that were looked at before."""
    if not found.total_bytes or not found.is_due(min_cleanable_dirty_ratio):
        return False
    return filthiest is None or found.cleanable_ratio > filthiest.cleanable_ratio


class SegmentSizes(NamedTuple):
    """What grouping looks at, in bytes."""

    base_offset: int
    log_bytes: int
    offset_index_bytes: int
    time_index_bytes: int


def group_segments(
    segments: Sequence[SegmentSizes], segment_bytes: int, segment_index_bytes: int, first_uncleanable_offset: int
) -> list[list[SegmentSizes]]:
    """Consecutive segments that become one: together no larger than a segment may be, by any of its files.

    The last offset of a segment is taken to be the one before the next segment, as finding the true one would take a
    scan. Empty segments join any group, lest one stay behind for every 2^31 offsets.
    """
    groups: list[list[SegmentSizes]] = []
    total = SegmentSizes(0, 0, 0, 0)
    for index, segment in enumerate(segments):
        after = segments[index + 1].base_offset if index + 1 < len(segments) else first_uncleanable_offset
        joined = SegmentSizes(
            total.base_offset,
            total.log_bytes + segment.log_bytes,
            total.offset_index_bytes + segment.offset_index_bytes,
            total.time_index_bytes + segment.time_index_bytes,
        )
        if (
            groups
            and joined.log_bytes <= segment_bytes
            and joined.offset_index_bytes <= segment_index_bytes
            and joined.time_index_bytes <= segment_index_bytes
            and (not segment.log_bytes or after - 1 - total.base_offset <= MAX_RELATIVE_OFFSET)
        ):
            groups[-1].append(segment)
            total = joined
        else:
            groups.append([segment])
            total = segment
    return groups
