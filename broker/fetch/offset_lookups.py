"""ListOffsets for a hosted partition: offsets by timestamp, and the earliest and latest that the client may see.

A lookup by time goes in steps (`storage.log.offset_lookup`).

Kafka: Partition.fetchOffsetForTimestamp, Partition.legacyFetchOffsetsForTimestamp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.layout import NO_PARTITION_LEADER_EPOCH
from odradek.storage.log.legacy_offsets import legacy_offsets_before as offsets_before
from odradek.storage.log.offset_lookup import FIRST_STEP, LongLookupError, LookupStep
from odradek.storage.offsets import LATEST, SpecialTimestamp, TimestampAndOffset

if TYPE_CHECKING:
    from odradek.broker.partition.partition import Partition
    from odradek.storage.log.unified_log import UnifiedLog


def fetch_offset_for_timestamp(
    partition: Partition,
    timestamp: int,
    isolation_level: int | None,
    current_leader_epoch: int,
    leader_only: bool,
    step: LookupStep = FIRST_STEP,
) -> TimestampAndOffset | None:
    """ListOffsets for one partition. `isolation_level` 0 or 1 for clients, None for replicas.

    Until a new leader's high watermark has passed the start of its epoch, clients get OFFSET_NOT_AVAILABLE: otherwise
    the latest offset could go backwards.

    Raises: KafkaError; LongLookupError if the lookup needs one step more.
    """
    log = partition.local_log_with_epoch(current_leader_epoch, leader_only)
    watermarks = log.watermarks
    high_watermark = watermarks.high_watermark
    if isolation_level is None:
        limit = log.log_end_offset
    else:
        limit = watermarks.last_stable_offset if isolation_level == 1 else high_watermark
    epoch_start = partition.leader_epoch_start_offset
    lagging = epoch_start is not None and epoch_start > high_watermark and isolation_level is not None
    if timestamp == LATEST:
        if lagging:
            _refuse_lagging(partition, log)
        return TimestampAndOffset(-1, limit, partition.leader_epoch)
    if step.leader_epoch not in (NO_PARTITION_LEADER_EPOCH, partition.leader_epoch):
        step = FIRST_STEP
    try:
        found = log.fetch_offset_by_timestamp(timestamp, step=step)
    except LongLookupError as long:
        long.leader_epoch = partition.leader_epoch
        raise
    if timestamp in (SpecialTimestamp.EARLIEST, SpecialTimestamp.EARLIEST_LOCAL):
        return found
    if found is not None and found.offset < limit:
        return found
    if lagging:
        _refuse_lagging(partition, log)
    return None


def latest_offset(partition: Partition, isolation_level: int, current_leader_epoch: int) -> int | None:
    """The latest offset that a consumer may see, in the leader's log.

    None where `fetch_offset_for_timestamp` refuses: the partition has another leader or epoch than the client believes,
    or its high watermark lags.
    """
    log = partition.log
    if log is None or partition.leader_id != partition.environment.broker_id:
        return None
    if current_leader_epoch not in (partition.leader_epoch, NO_PARTITION_LEADER_EPOCH):
        return None
    high_watermark = log.watermarks.high_watermark
    epoch_start = partition.leader_epoch_start_offset
    if epoch_start is not None and epoch_start > high_watermark:
        return None
    return log.watermarks.last_stable_offset if isolation_level == 1 else high_watermark


def _refuse_lagging(partition: Partition, log: UnifiedLog) -> None:
    raise KafkaError(
        ErrorCode.OFFSET_NOT_AVAILABLE,
        f"Failed to fetch offsets for partition {partition.topic_partition}: its high watermark ({log.high_watermark}) "
        f"is behind the start of the leader's epoch ({partition.leader_epoch_start_offset}).",
    )


def legacy_offsets_before(
    partition: Partition, timestamp: int, max_offsets: int, now_ms: int, *, is_consumer: bool, leader_only: bool
) -> list[int]:
    """ListOffsets v0: segment start offsets in descending order; a consumer's are capped by the high watermark."""
    log = partition.local_log_with_epoch(-1, leader_only)
    with log.disk("fetching offsets"):
        offsets = offsets_before(log, timestamp, max_offsets, now_ms)
    high_watermark = log.high_watermark
    if is_consumer and any(offset > high_watermark for offset in offsets):
        return [high_watermark, *(offset for offset in offsets if offset <= high_watermark)]
    return offsets
