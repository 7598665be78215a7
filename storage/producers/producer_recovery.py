"""Rebuilds producer state from the log: loads the newest snapshot and replays the batches after it.

Used at start-up, after a truncation, and while a segment is recovered. Only batch headers are read, except for control
batches, whose record contains the marker type.

Kafka: UnifiedLog.rebuildProducerState, UnifiedLog.loadProducersFromRecords.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.protocol.records.control import EndTransactionMarker
from odradek.protocol.records.layout import CONTROL_MASK, TRANSACTIONAL_MASK
from odradek.storage.append_info import AppendOrigin
from odradek.storage.offsets import UNKNOWN_OFFSET, UNKNOWN_POSITION
from odradek.storage.segment.transaction_index import AbortedTxn

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from odradek.protocol.records.batch import AnyBatch
    from odradek.storage.producers.producer_state import CompletedTxn, ProducerAppendInfo
    from odradek.storage.producers.producer_state_manager import ProducerMemory, ProducerStateManager
    from odradek.storage.segment.log_segment import LogSegment
    from odradek.storage.segment.log_segments import LogSegments

REPLAYED_AT_ONCE: Final = 500
"""Batches between two yields: some milliseconds of work."""


def apply_batch(
    info: ProducerAppendInfo,
    batch: AnyBatch,
    *,
    first_offset: int,
    last_offset: int,
    max_timestamp: int,
    segment_base_offset: int = UNKNOWN_OFFSET,
    position: int = UNKNOWN_POSITION,
) -> CompletedTxn | None:
    """Check one batch of magic 2 against its producer's state and collect it. Returns the transaction it completes, if
    any.
    """
    attributes = batch.attributes
    if attributes & CONTROL_MASK:
        record = next(iter(batch.records()), None)
        if record is None:
            return None  # compaction removed the marker, after all data of its transaction
        marker = EndTransactionMarker.from_record(record)
        return info.append_end_txn_marker(
            is_abort=not marker.is_commit,
            coordinator_epoch=marker.coordinator_epoch,
            producer_epoch=batch.producer_epoch,
            offset=first_offset,
            timestamp=record.timestamp,
        )
    info.append_data_batch(
        epoch=batch.producer_epoch,
        first_seq=batch.base_sequence,
        last_seq=batch.last_sequence,
        last_timestamp=max_timestamp,
        first_offset=first_offset,
        last_offset=last_offset,
        is_transactional=attributes & TRANSACTIONAL_MASK != 0,
        segment_base_offset=segment_base_offset,
        position=position,
    )
    return None


def replay_batch(producers: ProducerStateManager, batch: AnyBatch) -> CompletedTxn | None:
    """Apply a batch of the log. Returns the transaction that it completes, if any; the caller must complete it."""
    info = producers.prepare_update(batch.producer_id, AppendOrigin.REPLICATION)
    completed = apply_batch(
        info,
        batch,
        first_offset=batch.base_offset,
        last_offset=batch.last_offset,
        max_timestamp=batch.max_timestamp,
    )
    producers.update((info,))
    if batch.is_transactional:
        producers.clear_verification_state(batch.producer_id)
    return completed


def complete_transaction(producers: ProducerStateManager, segment: LogSegment, txn: CompletedTxn) -> None:
    """Complete a transaction in the producer state, after adding an aborted one to the segment's transaction index."""
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
    """Rebuild the state up to `last_offset` and take snapshots, so that the next rebuild replays less.

    `replayed`: the state at `last_offset`, if the batches were replayed already.
    """
    to_snapshot = {last_offset}
    if not segments.is_empty:
        last_base = segments.active.base_offset
        to_snapshot.add(last_base)
        previous = segments.lower(last_base)
        if previous is not None:
            to_snapshot.add(previous.base_offset)
    if producers.latest_snapshot_offset is None and after_clean_shutdown:
        # No snapshot after a clean stop means a log of an old version without snapshots. Kafka does not scan it.
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
    """Compute the state at `last_offset` without changing `producers`; yields after every `REPLAYED_AT_ONCE` batches.

    The log below `last_offset` must not change meanwhile. `replayed_from`: replay at least from this offset, even if a
    newer snapshot exists, because a snapshot contains only the last batch of each producer.
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
    """Run `replay_beside` without a pause: off the event loop, or for few batches."""
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
