"""Applies the rules of `compaction` to a log: its cleanable range, and whether it is due.

Kafka: LogToClean.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, NamedTuple

from odradek.storage.cleaning.compaction import (
    cleanable_offsets,
    cleanable_range,
    dirty_segments,
    is_filthier,
    max_compaction_delay_ms,
)

if TYPE_CHECKING:
    from odradek.storage.cleaning.compaction import CleanableRange, OffsetsToClean
    from odradek.storage.log.unified_log import UnifiedLog
    from odradek.storage.segment.log_segment import LogSegment

logger = logging.getLogger(__name__)


class LogToClean(NamedTuple):
    """A log with its cleanable range."""

    log: UnifiedLog
    cleanable: CleanableRange
    force_update_checkpoint: bool
    """The checkpoint lies outside the log: it must be set to `cleanable.first_dirty_offset`."""

    def is_filthier(self, filthiest: LogToClean | None) -> bool:
        """Whether this log is due and must be compacted before the filthiest one so far."""
        ratio = self.log.config.min_cleanable_dirty_ratio
        return is_filthier(self.cleanable, ratio, None if filthiest is None else filthiest.cleanable)


def examine(log: UnifiedLog, checkpoint: int | None, now_ms: int) -> LogToClean:
    """The cleanable range of a log. `checkpoint`: its first offset that is not compacted; None if it never was.

    Raises: OSError; KafkaError when a segment does not begin with a batch.
    """
    segments, config = list(log.segments), log.config
    offsets = _offsets(log, segments, checkpoint, now_ms)
    delay_ms = 0
    if config.max_compaction_lag_ms < now_ms:  # else no record can exceed the lag, and no file is read
        dirty = dirty_segments(segments, offsets.first_dirty_offset)
        timestamps = [segment.first_batch_timestamp() for segment in dirty]
        delay_ms = max_compaction_delay_ms(timestamps, config.max_compaction_lag_ms, now_ms)
    # Not worth a warning with retention, which regularly moves the start of a log past its checkpoint.
    is_surprising = not config.delete or (checkpoint or 0) > log.log_end_offset
    if offsets.force_update_checkpoint and is_surprising:
        logger.warning(
            "The cleaner checkpoint of %s, %s, lies outside of the log [%d, %d]: compacting the whole log again",
            log.topic_partition,
            checkpoint,
            log.log_start_offset,
            log.log_end_offset,
        )
    cleanable = cleanable_range(segments, offsets, delay_ms)
    return LogToClean(log, cleanable, offsets.force_update_checkpoint)


def cleanable_bytes(log: UnifiedLog, checkpoint: int | None, now_ms: int) -> int:
    """The bytes of a log that are to be compacted. Reads no records.

    Raises: OSError, where the time of a segment is that of its file.

    Kafka: LogCleanerManager.calculateCleanableBytes.
    """
    segments = list(log.segments)
    return cleanable_range(segments, _offsets(log, segments, checkpoint, now_ms)).cleanable_bytes


def _offsets(log: UnifiedLog, segments: list[LogSegment], checkpoint: int | None, now_ms: int) -> OffsetsToClean:
    return cleanable_offsets(
        checkpoint,
        segments,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        last_stable_offset=log.last_stable_offset,
        min_compaction_lag_ms=log.config.min_compaction_lag_ms,
        now_ms=now_ms,
    )
