"""Advancing the log start offset: for DeleteRecords, retention, and a follower whose leader advanced its own.

The records below the new start are hidden at once. The next retention pass deletes the segments that lie wholly below.

Invariants: the log start offset only moves up, never past the high watermark; leader epochs and completed transactions
below it are removed.

Kafka: UnifiedLog.maybeIncrementLogStartOffset, Partition.deleteRecordsOnLeader.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from odradek.protocol.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from odradek.storage.log.log_state import LogState

DELETE_TO_HIGH_WATERMARK: Final = -1

logger = logging.getLogger(__name__)


def maybe_increment_log_start_offset(log: LogState, offset: int, reason: str) -> bool:
    """Advance the log start to `offset`; False when the log starts at or above it.

    Raises: KafkaError OFFSET_OUT_OF_RANGE above the high watermark.
    """
    if offset > log.watermarks.high_watermark:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Cannot increment the log start offset to {offset} of partition {log.topic_partition} since it is "
            f"larger than the high watermark {log.watermarks.high_watermark}",
        )
    if offset <= log.watermarks.log_start_offset:
        return False
    log.watermarks.log_start_offset = offset
    logger.info("Incremented log start offset of %s to %d due to %s", log.topic_partition, offset, reason)
    log.leader_epochs.truncate_from_start(offset)
    log.producers.on_log_start_offset_incremented(offset)
    log.watermarks.update_first_unstable()
    return True


def delete_records(log: LogState, offset: int) -> int:
    """Hide the records below `offset` (-1: the high watermark). Returns that offset, which may lie below the log start.

    Raises: KafkaError POLICY_VIOLATION for a log without the cleanup policy `delete`; OFFSET_OUT_OF_RANGE.
    """
    if not log.local_log.config.delete:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION,
            f"Records of partition {log.topic_partition} can not be deleted due to the configured policy",
        )
    target = log.watermarks.high_watermark if offset == DELETE_TO_HIGH_WATERMARK else offset
    if target < 0:
        raise KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"The offset {target} for partition {log.topic_partition} is not valid",
        )
    maybe_increment_log_start_offset(log, target, "client delete records request")
    return target
