"""Rebuilding producer state from the log: the newest snapshot, then the batches behind it.

Used at start-up, after a truncation, and while a segment is recovered. Only headers are read, except of control
batches, whose record says which way a transaction ended.

Kafka: UnifiedLog.rebuildProducerState and loadProducersFromRecords.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.protocol.records.control import EndTransactionMarker
from odradek.storage.append_info import AppendOrigin
from odradek.storage.offsets import LogOffsetMetadata
from odradek.storage.segment.transaction_index import AbortedTxn

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from odradek.protocol.records.batch import AnyBatch
    from odradek.storage.producers.producer_state import CompletedTxn, ProducerAppendInfo
    from odradek.storage.producers.producer_state_manager import ProducerMemory, ProducerStateManager
    from odradek.storage.segment.log_segment import LogSegment
    from odradek.storage.segment.log_segments import LogSegments

REPLAYED_AT_ONCE: Final = 500
"""Some milliseconds of batches."""


def apply_batch(
    info: ProducerAppendInfo,
    batch: AnyBatch,
    *,
    first_offset: LogOffsetMetadata,
    last_offset: int,
    max_timestamp: int,
) -> CompletedTxn | None:
    """Check one batch against its producer's state and collect it; the transaction it completes, if it does."""
    if batch.is_control:
        record = next(iter(batch.records()), None)
        if record is None:
            return None  # compaction has removed the marker together with all data of its transaction
        marker = EndTransactionMarker.from_record(record)
        return info.append_end_txn_marker(
            is_abort=not marker.is_commit,
            coordinator_epoch=marker.coordinator_epoch,
            producer_epoch=batch.producer_epoch,
            offset=first_offset.message_offset,
            timestamp=record.timestamp,
        )
    info.append_data_batch(
        epoch=batch.producer_epoch,
        first_seq=batch.base_sequence,
        last_seq=batch.last_sequence,
        last_timestamp=max_timestamp,
        first_offset=first_offset,
        last_offset=last_offset,
        is_transactional=batch.is_transactional,
    )
    return None


def replay_batch(producers: ProducerStateManager, batch: AnyBatch) -> CompletedTxn | None:
    """Apply a batch that is in the log already. Its completed transaction is to be completed by the caller."""
    info = producers.prepare_update(batch.producer_id, AppendOrigin.REPLICATION)
    completed = apply_batch(
        info,
        batch,
        first_offset=LogOffsetMetadata(batch.base_offset),
        last_offset=batch.last_offset,
        max_timestamp=batch.max_timestamp,
    )
    producers.update(info)
    if batch.is_transactional:
        producers.clear_verification_state(batch.producer_id)
    return completed


def complete_transaction(producers: ProducerStateManager, segment: LogSegment, txn: CompletedTxn) -> None:
    """Note a finished transaction: in the segment's index if it aborted, then in the producer state."""
    if txn.is_aborted:
        last_stable_offset = producers.last_stable_offset(txn)
        segment.txn_index.append(AbortedTxn(txn.producer_id, txn.first_offset, txn.last_offset, last_stable_offset))
    producers.complete_txn(txn)


def rebuild_producer_state(
    producers: ProducerStateManager,
    segments: LogSegments,
    *,
    log_start_offset: int,
    last_offset: int,
    now_ms: int,
    after_clean_shutdown: bool,
    replayed: ProducerMemory | None = None,
) -> None:
    """Bring the state to what the log says up to `last_offset`, leaving snapshots that make the next time cheap.

    `replayed` is that state, if somebody has replayed the batches already.
    """
    to_snapshot = {last_offset}
    if not segments.is_empty:
        last_base = segments.active.base_offset
        to_snapshot.add(last_base)
        previous = segments.lower(last_base)
        if previous is not None:
            to_snapshot.add(previous.base_offset)
    if producers.latest_snapshot_offset is None and after_clean_shutdown:
        # No snapshot after a clean stop means a log from before there were any: Kafka does not scan it.
        for offset in sorted(to_snapshot):
            producers.map_end_offset = offset
            producers.take_snapshot()
        return
    was_empty = producers.is_empty and producers.map_end_offset >= last_offset
    producers.truncate_and_reload(log_start_offset, last_offset, now_ms)
    if replayed is not None:
        producers.take_over(replayed)
    elif last_offset > producers.map_end_offset and not was_empty:
        for segment in segments.range(producers.map_end_offset, last_offset):
            start = max(segment.base_offset, producers.map_end_offset, log_start_offset)
            producers.map_end_offset = start
            if segment.base_offset in to_snapshot:
                producers.take_snapshot()
            for _ in _replay_segment(producers, segment, start, last_offset):
                pass
    producers.map_end_offset = last_offset
    producers.take_snapshot()


def replay_beside(
    producers: ProducerStateManager,
    segments: LogSegments,
    *,
    log_start_offset: int,
    last_offset: int,
    now_ms: int,
    replayed_from: int | None = None,
) -> Generator[None, None, ProducerMemory]:
    """What the state was when the log ended at `last_offset`, worked out beside the state of now, some batches at a
    time. Nothing is changed, and nothing below `last_offset` may change meanwhile.

    `replayed_from`: batches are replayed at least from there, though there be a younger snapshot: it has only the last
    batch of each producer.
    Raises: OSError; KafkaError.
    """
    snapshot_limit = last_offset if replayed_from is None else replayed_from
    beside = producers.at_snapshot(log_start_offset, snapshot_limit, now_ms)
    for segment in segments.range(beside.map_end_offset, last_offset):
        start = max(segment.base_offset, beside.map_end_offset, log_start_offset)
        yield from _replay_segment(beside, segment, start, last_offset)
    beside.map_end_offset = last_offset
    return beside.memory()


def run_to_end(replay: Generator[None, None, ProducerMemory]) -> ProducerMemory:
    """All of `replay_beside` at once, for who is not on an event loop, or has little to replay."""
    while True:
        try:
            next(replay)
        except StopIteration as end:
            memory: ProducerMemory = end.value
            return memory


def _replay_segment(producers: ProducerStateManager, segment: LogSegment, start: int, end: int) -> Iterator[None]:
    """Yields after every REPLAYED_AT_ONCE batches."""
    first = segment.translate_offset(start)
    if first is None:
        return
    for count, where in enumerate(segment.records.positions(first.position), 1):
        if where.last_offset >= end:
            break
        if count % REPLAYED_AT_ONCE == 0:
            yield
        batch = segment.records.header_at(where)
        if batch.producer_id < 0:
            continue
        if batch.is_control:
            batch = segment.records.batch_at(where)
        completed = replay_batch(producers, batch)
        if completed is not None:
            producers.complete_txn(completed)
