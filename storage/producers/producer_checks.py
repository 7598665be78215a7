"""Checks an append against the producer state before the write, and updates the state after it.

A duplicate (one of the last five batches of the producer, by its sequences) is not written again; the append returns
the offsets of the first write. A transactional batch of a producer without an open transaction must present the guard
of its verification by the coordinator (KIP-890): otherwise a late request could begin a transaction that never ends.

Invariant: `check` and `check_replicated` change nothing; `apply` is called after the write, with their results.

Kafka: UnifiedLog.analyzeAndValidateProducerState, UnifiedLog.maybeStartTransactionVerification.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.layout import TRANSACTIONAL_MASK
from odradek.storage.append_info import AppendOrigin
from odradek.storage.offsets import UNKNOWN_OFFSET, UNKNOWN_POSITION
from odradek.storage.producers.producer_recovery import apply_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.protocol.records.batch import AnyBatch
    from odradek.storage.producers.producer_state import CompletedTxn, ProducerAppendInfo
    from odradek.storage.producers.producer_state_manager import ProducerStateManager
    from odradek.storage.segment.log_segment import LogSegment


class ProducerChecks:
    """The producer checks of one log's appends."""

    __slots__ = ("_producers",)

    def __init__(self, producers: ProducerStateManager) -> None:
        self._producers = producers

    def check(
        self,
        batch: AnyBatch,
        *,
        first_offset: int,
        last_offset: int,
        max_timestamp: int,
        origin: AppendOrigin,
        verification_guard: object | None,
        segment_base_offset: int = UNKNOWN_OFFSET,
        position: int = UNKNOWN_POSITION,
    ) -> tuple[ProducerAppendInfo, CompletedTxn | None]:
        """Check one batch of a client or coordinator. Returns the arguments of `apply`. Raises KafkaError."""
        if batch.attributes & TRANSACTIONAL_MASK and not self.has_ongoing_transaction(batch.producer_id):
            self._check_verified(batch, verification_guard)
        info = self._producers.prepare_update(batch.producer_id, origin)
        completed = apply_batch(
            info,
            batch,
            first_offset=first_offset,
            last_offset=last_offset,
            max_timestamp=max_timestamp,
            segment_base_offset=segment_base_offset,
            position=position,
        )
        return info, completed

    def check_replicated(
        self, batches: Sequence[AnyBatch], segment: LogSegment
    ) -> tuple[list[ProducerAppendInfo], list[CompletedTxn]]:
        """Collect the producer updates of a leader's batches, which are appended to `segment` next."""
        infos: dict[int, ProducerAppendInfo] = {}
        completed: list[CompletedTxn] = []
        position = segment.size
        for batch in batches:
            producer_id = batch.producer_id
            if producer_id >= 0:
                info = infos.get(producer_id)
                if info is None:
                    info = self._producers.prepare_update(producer_id, AppendOrigin.REPLICATION)
                    infos[producer_id] = info
                done = apply_batch(
                    info,
                    batch,
                    first_offset=batch.base_offset,
                    last_offset=batch.last_offset,
                    max_timestamp=batch.max_timestamp,
                    segment_base_offset=segment.base_offset,
                    position=position,
                )
                if done is not None:
                    completed.append(done)
            position += len(batch.buffer)
        return list(infos.values()), completed

    def apply(self, infos: Sequence[ProducerAppendInfo], completed: Sequence[CompletedTxn]) -> None:
        """Apply the updates of batches that are written."""
        if infos:
            self._producers.update(infos)
        for info in infos:
            if info.is_transactional:
                self._producers.clear_verification_state(info.producer_id)
        for txn in completed:
            self._producers.complete_txn(txn)

    def has_ongoing_transaction(self, producer_id: int) -> bool:
        entry = self._producers.last_entry(producer_id)
        return entry is not None and entry.current_txn_first_offset >= 0

    def start_verification(self, producer_id: int, sequence: int, producer_epoch: int, now_ms: int) -> object | None:
        """The guard that the append must present after the coordinator confirmed the partition; None when a transaction
        is open.
        """
        if self.has_ongoing_transaction(producer_id):
            return None
        state = self._producers.maybe_create_verification_state(producer_id, sequence, producer_epoch, now_ms)
        return state.guard

    def _check_verified(self, batch: AnyBatch, guard: object | None) -> None:
        if not self._producers.config.transaction_verification or batch.is_control:
            return
        state = self._producers.verification_states.get(batch.producer_id)
        if state is None or state.guard is not guard:
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")
