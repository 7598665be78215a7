"""A log as the cleaner looks at it: what `compaction` decides about its segments, and whether it is due.

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
    from odradek.storage.cleaning.compaction import CleanableRange
    from odradek.storage.log.unified_log import UnifiedLog

logger = logging.getLogger(__name__)


class LogToClean(NamedTuple):
    """What was found in a log."""

    log: UnifiedLog
    cleanable: CleanableRange
    force_update_checkpoint: bool
    """The checkpoint does not fit the log: it is to say `cleanable.first_dirty_offset`."""

    def is_filthier(self, filthiest: LogToClean | None) -> bool:
        """Whether it is to be compacted before the filthiest of those that were looked at before."""
        ratio = self.log.config.min_cleanable_dirty_ratio
        return is_filthier(self.cleanable, ratio, None if filthiest is None else filthiest.cleanable)


def look_at(log: UnifiedLog, checkpoint: int | None, now_ms: int) -> LogToClean:
    """Look at a log. `checkpoint` is the first offset not compacted so far; None if none was.

    Raises: OSError; KafkaError when a segment does not begin with a batch.
    """
    segments, config = list(log.segments), log.config
    offsets = cleanable_offsets(
        checkpoint,
        segments,
        log_start_offset=log.log_start_offset,
        log_end_offset=log.log_end_offset,
        last_stable_offset=log.last_stable_offset,
        min_compaction_lag_ms=config.min_compaction_lag_ms,
        now_ms=now_ms,
    )
    delay_ms = 0
    if config.max_compaction_lag_ms < now_ms:  # else nothing can be older, and no file need be read
        dirty = dirty_segments(segments, offsets.first_dirty_offset)
        timestamps = [segment.first_batch_timestamp() for segment in dirty]
        delay_ms = max_compaction_delay_ms(timestamps, config.max_compaction_lag_ms, now_ms)
    # Retention moves the start of a log past its checkpoint all the time.
    is_surprising = not config.delete or (checkpoint or 0) > log.log_end_offset
    if offsets.force_update_checkpoint and is_surprising:
        logger.warning(
            "The cleaner checkpoint of %s, %s, lies outside of the log [%d, %d]: all of it counts as dirty",
            log.topic_partition,
            checkpoint,
            log.log_start_offset,
            log.log_end_offset,
        )
    cleanable = cleanable_range(segments, offsets, delay_ms)
    return LogToClean(log, cleanable, offsets.force_update_checkpoint)
