"""Retention: pure rules that select the segments to delete.

Three rules in this order. Each goes from the oldest segment on and stops at the first that does not match:

    start offset   the next segment begins at or below the log start offset     (any cleanup policy)
    size           without it the log still has retention.bytes                 (policy delete)
    time           its newest record is older than retention.ms                 (policy delete)

Invariants: no segment with records at or above the high watermark is selected, so the log start offset never passes it;
the last segment is selected only if it has data.

Kafka: UnifiedLog.deleteLogStartOffsetBreachedSegments, UnifiedLog.deleteRetentionSizeBreachedSegments,
UnifiedLog.deleteRetentionMsBreachedSegments, UnifiedLog.deletableSegments.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


class RetainedSegment(Protocol):
    """The properties of a segment that the rules use."""

    @property
    def size(self) -> int: ...

    @property
    def largest_timestamp(self) -> int: ...

    base_offset: int


SegmentT = TypeVar("SegmentT", bound=RetainedSegment)


def start_offset_breached(
    segments: Sequence[SegmentT], *, high_watermark: int, log_end_offset: int, log_start_offset: int
) -> list[SegmentT]:
    """Segments that lie wholly below the log start offset."""
    return _deletable(
        segments,
        high_watermark,
        log_end_offset,
        lambda _, next_base_offset: next_base_offset is not None and next_base_offset <= log_start_offset,
    )


def size_breached(
    segments: Sequence[SegmentT], *, high_watermark: int, log_end_offset: int, retention_bytes: int
) -> list[SegmentT]:
    """Segments whose removal leaves at least `retention_bytes`; -1 is no limit."""
    size = sum(segment.size for segment in segments)
    if retention_bytes < 0 or size < retention_bytes:
        return []
    excess = size - retention_bytes

    def is_breached(segment: SegmentT, _: int | None) -> bool:
        nonlocal excess
        if excess < segment.size:
            return False
        excess -= segment.size
        return True

    return _deletable(segments, high_watermark, log_end_offset, is_breached)


def time_breached(
    segments: Sequence[SegmentT], *, high_watermark: int, log_end_offset: int, retention_ms: int, now_ms: int
) -> list[SegmentT]:
    """Segments whose newest record is older than `retention_ms`; -1 is no limit."""
    if retention_ms < 0:
        return []
    return _deletable(
        segments, high_watermark, log_end_offset, lambda segment, _: now_ms - segment.largest_timestamp > retention_ms
    )


def _deletable(
    segments: Sequence[SegmentT],
    high_watermark: int,
    log_end_offset: int,
    is_breached: Callable[[SegmentT, int | None], bool],
) -> list[SegmentT]:
    found: list[SegmentT] = []
    for index, segment in enumerate(segments):
        is_last = index == len(segments) - 1
        next_base_offset = None if is_last else segments[index + 1].base_offset
        upper_bound = log_end_offset if next_base_offset is None else next_base_offset
        if high_watermark < upper_bound or not is_breached(segment, next_base_offset):
            break
        if is_last and segment.size == 0:
            break
        found.append(segment)
    return found
