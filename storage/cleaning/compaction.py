"""The rules of compaction: which part of a log, when, and in which groups. Pure functions, no I/O.

    log start ... first dirty ... first uncleanable ... active segment
    |   clean       |   cleanable     |   must stay

Earlier compactions have processed the clean part, where keys are unique. A log is compacted when its cleanable part is
large enough (`min.cleanable.dirty.ratio`) or has waited for `max.compaction.lag.ms`. Segments with records newer than
`min.compaction.lag.ms`, and records at or above the last stable offset, are not cleanable.

Kafka: LogCleanerManager.cleanableOffsets, LogCleanerManager.maxCompactionDelay,
LogCleanerManager.calculateCleanableBytes, LogToClean, Cleaner.groupSegmentsBySize.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from odradek.storage.append_info import MAX_RELATIVE_OFFSET


class DirtySegment(Protocol):
    """The properties of a segment that the rules use. LogSegment implements it."""

    @property
    def base_offset(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def largest_timestamp(self) -> int:
        """In ms: of the records, else the modification time of the file."""


SegmentT = TypeVar("SegmentT", bound=DirtySegment)


class OffsetsToClean(NamedTuple):
    """The cleanable offsets of a log."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    force_update_checkpoint: bool
    """The checkpoint lies outside the log: it must be set to the first dirty offset."""


class CleanableRange(NamedTuple):
    """The cleanable range of a log in whole segments, with its size."""

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    compaction_delay_ms: int = 0
    """For how long a dirty record has been older than max.compaction.lag.ms; 0 if none is."""

    @property
    def total_bytes(self) -> int:
        return self.clean_bytes + self.cleanable_bytes

    @property
    def cleanable_ratio(self) -> float:
        """The cleanable fraction of the bytes; 0 for an empty log."""
        return self.cleanable_bytes / self.total_bytes if self.total_bytes else 0.0

    def is_due(self, min_cleanable_dirty_ratio: float) -> bool:
        """Whether the log must be compacted: by its ratio, or by max.compaction.lag.ms."""
        is_late = self.compaction_delay_ms > 0
        return (is_late and self.cleanable_bytes > 0) or self.cleanable_ratio > min_cleanable_dirty_ratio


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
    """The offsets that may be compacted. `segments`: all segments of the log, the last one active.

    A `checkpoint` outside of the log, which was truncated or deleted from since, counts as the log start.
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
    """The segments from the one that contains the first dirty offset to the last before the active one."""
    if first_dirty_offset >= segments[-1].base_offset:
        return ()
    first = bisect_right(segments, first_dirty_offset, key=_base_offset)
    return segments[max(0, first - 1) : -1]


def _base_offset(segment: DirtySegment) -> int:
    return segment.base_offset


def max_compaction_delay_ms(first_batch_timestamps: Iterable[int], max_compaction_lag_ms: int, now_ms: int) -> int:
    """The time in ms for which the oldest dirty segment has exceeded `max_compaction_lag_ms`; 0 if it has not.

    `first_batch_timestamps`: of the dirty segments without the active one; -1 for none.
    """
    clean_until_ms = now_ms - max(max_compaction_lag_ms, 0)
    earliest_ms = min((timestamp for timestamp in first_batch_timestamps if timestamp > 0), default=clean_until_ms)
    return max(0, clean_until_ms - earliest_ms)


def cleanable_range(
    segments: Sequence[DirtySegment], offsets: OffsetsToClean, compaction_delay_ms: int = 0
) -> CleanableRange:
    """The cleanable range in whole segments, without the one that contains the first uncleanable offset.

    A segment that contains the first dirty offset, but begins below, counts both as clean and as cleanable.
    """
    first_dirty = offsets.first_dirty_offset
    first_uncleanable = (*dirty_segments(segments, offsets.first_uncleanable_offset), segments[-1])[0].base_offset
    clean_bytes = sum(segment.size for segment in segments if segment.base_offset < first_dirty)
    cleanable_bytes = 0
    if first_dirty < first_uncleanable:
        cleanable_bytes = sum(
            segment.size for segment in dirty_segments(segments, first_dirty) if segment.base_offset < first_uncleanable
        )
    return CleanableRange(first_dirty, first_uncleanable, clean_bytes, cleanable_bytes, compaction_delay_ms)


def is_filthier(found: CleanableRange, min_cleanable_dirty_ratio: float, filthiest: CleanableRange | None) -> bool:
    """Whether a log is due and has a higher cleanable ratio than the filthiest one so far."""
    if not found.total_bytes or not found.is_due(min_cleanable_dirty_ratio):
        return False
    return filthiest is None or found.cleanable_ratio > filthiest.cleanable_ratio


class SegmentSizes(NamedTuple):
    """The sizes of a segment that grouping uses, in bytes."""

    base_offset: int
    log_bytes: int
    offset_index_bytes: int
    time_index_bytes: int


def group_segments(
    segments: Sequence[SegmentSizes], segment_bytes: int, segment_index_bytes: int, first_uncleanable_offset: int
) -> list[list[SegmentSizes]]:
    """Group consecutive segments that become one. No file of a group exceeds the configured sizes together.

    The last offset of a segment counts as the one before the next segment, because finding the exact one takes a scan.
    Empty segments join any group: otherwise one empty segment would stay for every 2^31 offsets.
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
