"""Appends validated batches to a log and updates the state that follows from them.

The order: roll if needed, check the producers, write, assign the leader epoch, advance the log end, apply the prepared
producer updates, flush if `flush.messages` requires it.

Invariants: every refusal comes before the write and leaves neither bytes nor producer state; a leader writes one batch
at a time, a follower all batches of a fetch with the offsets and epochs of the leader; no step after the write can fail
for lack of space, and a write that fails so leaves everything unchanged.

Kafka: UnifiedLog.append.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.new_tuple import new_tuple
from odradek.protocol.records.layout import MAGIC_V2
from odradek.storage.append_info import CLIENT, MAX_RELATIVE_OFFSET, AppendedBatch, LogAppendInfo
from odradek.storage.offsets import LogOffsetMetadata
from odradek.storage.segment.file_records import BatchPosition
from odradek.storage.validation.validator import check_replicated_offsets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.protocol.records.batch import AnyBatch
    from odradek.storage.append_info import AppendOrigin
    from odradek.storage.log.log_state import LogState
    from odradek.storage.producers.producer_state import BatchMetadata
    from odradek.storage.segment.transaction_index import AbortedTxn
    from odradek.storage.validation.validation_rules import ValidatedBatch


def append_validated(
    log: LogState,
    validated: ValidatedBatch,
    leader_epoch: int,
    origin: AppendOrigin,
    verification_guard: object | None,
    now_ms: int,
    is_alone: bool = False,
) -> LogAppendInfo:
    """Write one batch (or messages of an old format) with its assigned offsets, unless it is a duplicate.

    `is_alone`: no other replica has to have it.
    """
    local = log.local_log
    (
        batch,
        parts,
        size,
        first_offset,
        last_offset,
        max_timestamp,
        log_append_time,
        messages,
        is_rebuilt,
        conversion_ns,
        temporary_bytes,
    ) = validated
    config = local.config
    if size > config.segment_bytes:
        raise _too_large_for_a_segment(log, size)
    segment = local.segments.active
    if segment.should_roll(config, size, last_offset, max_timestamp, now_ms):
        segment = log.roll_for(first_offset)
    info = completed = None
    aborted: Sequence[AbortedTxn] = ()
    entry = log.producers.producers.get(batch.producer_id) if batch.producer_id >= 0 and origin is CLIENT else None
    is_next = entry is not None and not log.producers.verification_states and entry.is_next(batch)
    if entry is not None and not is_next:
        duplicate = entry.find_duplicate(batch.producer_epoch, batch.base_sequence, batch.last_sequence)
        if duplicate is not None:
            return _answer_duplicate(log, duplicate)
    if batch.producer_id >= 0 and not is_next:
        info, completed = log.checks.check(
            batch,
            first_offset=first_offset,
            last_offset=last_offset,
            max_timestamp=max_timestamp,
            origin=origin,
            verification_guard=verification_guard,
            segment_base_offset=segment.base_offset,
            position=segment.records.size,
        )
        aborted = () if completed is None or not completed.is_aborted else log.producers.aborted_by([info], [completed])
    if messages:
        segment.append_batches(parts, messages)
    else:
        segment.append(parts, last_offset, max_timestamp, last_offset, aborted)
    if leader_epoch != log.leader_epochs.latest_epoch:
        log.leader_epochs.assign(leader_epoch, first_offset)
    end_position = segment.records.size
    if not messages:
        where = (first_offset, last_offset, end_position - size, size, max_timestamp)
        segment.appended = new_tuple(BatchPosition, where)
    # LocalLog.move_end, written out: one call less for each append.
    local.log_end_offset = last_offset + 1
    local.end_offset_metadata = new_tuple(LogOffsetMetadata, (last_offset + 1, segment.base_offset, end_position))
    if is_next and entry is not None:
        entry.add_next(last_offset, last_offset - first_offset, max_timestamp)
    elif info is not None:
        log.checks.apply([info], [] if completed is None else [completed])
    log.producers.map_end_offset = last_offset + 1
    watermarks = log.watermarks
    watermarks.appended(is_alone=is_alone)
    log_start_offset = watermarks.log_start_offset
    # Named arguments of a class cost a dict: twice the time.
    appended = LogAppendInfo(first_offset, last_offset, max_timestamp, log_append_time, log_start_offset, leader_epoch)
    appended.is_committed = appended.high_watermark_moved = is_alone
    if is_rebuilt:
        appended.records_converted = last_offset - first_offset + 1
        appended.conversion_ns = conversion_ns
        appended.temporary_bytes = temporary_bytes
    if local.log_end_offset - log.flusher.recovery_point >= config.flush_messages:
        appended.flush_required = True
        log.flusher.flush(local.log_end_offset)
    return appended


def append_replicated(log: LogState, found: list[AnyBatch], now_ms: int) -> LogAppendInfo:
    """Write a leader's batches unchanged: all in one write, each with its own index entries."""
    local = log.local_log
    check_replicated_offsets(found, local.log_end_offset, local.topic_partition, log.watermarks.log_start_offset)
    entries: list[AppendedBatch] = []
    parts: list[memoryview] = []
    size = 0
    for batch in found:  # usually one: no comprehensions
        last_offset, part = batch.last_offset, batch.buffer
        entries.append(new_tuple(AppendedBatch, (last_offset, batch.max_timestamp, last_offset, len(part))))
        parts.append(part)
        size += len(part)
    if size > local.config.segment_bytes:
        raise _too_large_for_a_segment(log, size)
    last = entries[-1]
    largest = max(entries, key=_max_timestamp)
    has_first_offset = found[0].magic >= MAGIC_V2
    roll_offset = found[0].base_offset if has_first_offset else last.last_offset - MAX_RELATIVE_OFFSET
    segment = local.segments.active
    if segment.should_roll(local.config, size, last.last_offset, largest.max_timestamp, now_ms):
        segment = log.roll_for(roll_offset)
    infos, completed = log.checks.check_replicated(found, segment)
    aborted = log.producers.aborted_by(infos, completed) if completed else ()
    segment.append_batches(parts, entries, aborted)
    for batch in found:
        if batch.magic < MAGIC_V2:
            log.leader_epochs.clear()
        elif batch.partition_leader_epoch != log.leader_epochs.latest_epoch:
            log.leader_epochs.assign(batch.partition_leader_epoch, batch.base_offset)
    local.move_end(last.last_offset + 1)
    log.checks.apply(infos, completed)
    log.producers.map_end_offset = local.log_end_offset
    log.watermarks.appended(is_alone=False)
    flush_required = log.unflushed_messages >= local.config.flush_messages
    if flush_required:
        log.flusher.flush(local.log_end_offset)
    first_offset = found[0].base_offset if has_first_offset else found[0].last_offset
    return LogAppendInfo(
        first_offset=first_offset,
        last_offset=last.last_offset,
        max_timestamp=largest.max_timestamp,
        log_start_offset=log.watermarks.log_start_offset,
        last_leader_epoch=found[-1].partition_leader_epoch,
        flush_required=flush_required,
    )


def _too_large_for_a_segment(log: LogState, size: int) -> KafkaError:
    return KafkaError(
        ErrorCode.RECORD_LIST_TOO_LARGE,
        f"Message batch size is {size} bytes in append to partition {log.topic_partition}, which exceeds the "
        f"maximum configured segment size of {log.local_log.config.segment_bytes}.",
    )


def _answer_duplicate(log: LogState, duplicate: BatchMetadata) -> LogAppendInfo:
    return LogAppendInfo(
        first_offset=duplicate.first_offset,
        last_offset=duplicate.last_offset,
        max_timestamp=duplicate.timestamp,
        log_append_time=duplicate.timestamp,
        log_start_offset=log.watermarks.log_start_offset,
        duplicate=True,
        # The producer repeats the batch because it has no response: the fsync of the first append may still run, or a
        # kill of the process prevented it.
        flush_required=log.unflushed_messages >= log.local_log.config.flush_messages,
    )


def _max_timestamp(batch: AppendedBatch) -> int:
    return batch.max_timestamp
