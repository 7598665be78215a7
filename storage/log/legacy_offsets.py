"""ListOffsets version 0: base offsets of segments, selected by the modification time of their files.

Kafka: UnifiedLog.legacyFetchOffsetsBefore.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.storage.offsets import SpecialTimestamp

if TYPE_CHECKING:
    from odradek.storage.log.unified_log import UnifiedLog


def legacy_offsets_before(log: UnifiedLog, timestamp: int, max_offsets: int, now_ms: int) -> list[int]:
    """At most `max_offsets` base offsets in descending order, from the last segment modified at or before `timestamp`
    (ms) on.
    """
    points = [(max(segment.base_offset, log.log_start_offset), segment.modified_ms) for segment in log.segments]
    if log.segments.active.size > 0:
        points.append((log.log_end_offset, now_ms))
    if timestamp == SpecialTimestamp.LATEST:
        last = len(points) - 1
    elif timestamp == SpecialTimestamp.EARLIEST:
        last = 0
    else:
        last = max((index for index, (_, changed_ms) in enumerate(points) if changed_ms <= timestamp), default=-1)
    count = min(max(max_offsets, 0), last + 1)
    return sorted((offset for offset, _ in points[last + 1 - count : last + 1]), reverse=True)
