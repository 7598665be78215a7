"""ListOffsets version 0: base offsets of segments, selected by the modification time of their files.

Kafka: UnifiedLog.legacyFetchOffsetsBefore.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.offsets import SpecialTimestamp

if TYPE_CHECKING:
    from odradek.storage.log.unified_log import UnifiedLog


def legacy_offsets_before(log: UnifiedLog, timestamp: int, max_offsets: int, now_ms: int) -> list[int]:
    """At most `max_offsets` base offsets in descending order, from the last segment modified at or before `timestamp`
    (ms) on.

    Raises: KafkaError UNKNOWN_SERVER_ERROR for a negative `max_offsets`, of which Apache Kafka makes an array.
    """
    if max_offsets < 0:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"A list cannot have {max_offsets} offsets")
    points = [(max(segment.base_offset, log.log_start_offset), segment.modified_ms) for segment in log.segments]
    if log.segments.active.size > 0:
        points.append((log.log_end_offset, now_ms))
    if timestamp == SpecialTimestamp.LATEST:
        last = len(points) - 1
    elif timestamp == SpecialTimestamp.EARLIEST:
        last = 0
    else:
        last = max((index for index, (_, changed_ms) in enumerate(points) if changed_ms <= timestamp), default=-1)
    count = min(max_offsets, last + 1)
    return sorted((offset for offset, _ in points[last + 1 - count : last + 1]), reverse=True)
