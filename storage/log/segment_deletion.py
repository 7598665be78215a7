"""Retention: deletes segments with their files and producer snapshots.

`retention` selects the segments. If all are selected, a new one is rolled first, so that the log always has a segment.

Invariant: the log start offset is advanced before a segment is removed, so that no reader looks for it.

Kafka: UnifiedLog.deleteOldSegments, UnifiedLog.deleteSegments.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from odradek.storage.disk.disk_space import LogDirFullError
from odradek.storage.log import retention
from odradek.storage.log.log_start import maybe_increment_log_start_offset

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.storage.log.log_state import LogState
    from odradek.storage.segment.log_segment import LogSegment

logger = logging.getLogger(__name__)


def delete_old_segments(log: LogState, now_ms: int) -> int:
    """Apply the three rules one after the other; returns the number of deleted segments."""
    config = log.local_log.config
    removed = _delete(
        log,
        retention.start_offset_breached(
            list(log.segments),
            high_watermark=log.watermarks.high_watermark,
            log_end_offset=log.local_log.log_end_offset,
            log_start_offset=log.watermarks.log_start_offset,
        ),
        f"they are below the log start offset {log.watermarks.log_start_offset}",
    )
    if not config.delete:
        return removed
    removed += _delete(
        log,
        retention.size_breached(
            list(log.segments),
            high_watermark=log.watermarks.high_watermark,
            log_end_offset=log.local_log.log_end_offset,
            retention_bytes=config.retention_bytes,
        ),
        f"the log is larger than retention.bytes={config.retention_bytes}",
    )
    return removed + _delete(
        log,
        retention.time_breached(
            list(log.segments),
            high_watermark=log.watermarks.high_watermark,
            log_end_offset=log.local_log.log_end_offset,
            retention_ms=config.retention_ms,
            now_ms=now_ms,
        ),
        f"they are older than retention.ms={config.retention_ms}",
    )


def delete_snapshots(log: LogState, segments: Sequence[LogSegment]) -> None:
    """Delete the producer snapshots at the base offsets of removed segments.

    Kafka: UnifiedLog.deleteProducerSnapshots.
    """
    for segment in segments:
        path = log.producers.mark_snapshot_for_deletion(segment.base_offset)
        if path is not None:
            log.local_log.delete_snapshot_later(path)


def _delete(log: LogState, deletable: list[LogSegment], reason: str) -> int:
    if not deletable:
        return 0
    bases = [segment.base_offset for segment in deletable]
    logger.info("Deleting segments %s of %s because %s", bases, log.topic_partition, reason)
    if len(deletable) == len(log.segments):
        try:
            log.roll()
        except LogDirFullError:
            # The disk is full: deleting the others makes room, and the next pass deletes the last one.
            del deletable[-1], bases[-1]
            if not deletable:
                return 0
    following = log.segments.higher(bases[-1])
    if following is not None:
        maybe_increment_log_start_offset(log, following.base_offset, "segment deletion")
    log.local_log.remove_segments(deletable)
    log.flusher.files_changed()
    delete_snapshots(log, deletable)
    return len(deletable)
