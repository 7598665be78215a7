"""The transactions of a log during its compaction: which batches are aborted, and which markers may be removed.

The aborted transactions come from the transaction indexes, ordered by first offset. One becomes ongoing when the
compaction reaches its first offset; its batches are removed until its marker ends it. A marker may be removed if the
compaction found no batch of its transaction; otherwise an abort marker keeps its entry in the new transaction index.
The state continues from segment to segment, because transactions span segments.

Kafka: CleanedTransactionMetadata.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from odradek.protocol.records.control import ControlRecordType, control_record_type

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.protocol.records.batch import AnyBatch
    from odradek.storage.segment.transaction_index import AbortedTxn


class TransactionFilter:
    """Tracks the transactions of a log, batch by batch in the order of offsets."""

    __slots__ = ("_aborted", "_ongoing_aborted", "_ongoing_committed", "_seen_data", "retain")

    def __init__(self, retain: Callable[[AbortedTxn], None] | None = None) -> None:
        self.retain = retain
        """Called at the marker of each aborted transaction that still had data."""
        self._aborted: list[tuple[int, AbortedTxn]] = []
        self._ongoing_aborted: dict[int, AbortedTxn] = {}
        self._ongoing_committed: set[int] = set()
        self._seen_data: set[int] = set()

    def add_aborted(self, transactions: Iterable[AbortedTxn]) -> None:
        """Add the aborted transactions of the next offset range; known ones are ignored.

        Kafka: CleanedTransactionMetadata.addAbortedTransactions.
        """
        for transaction in transactions:
            heapq.heappush(self._aborted, (transaction.first_offset, transaction))

    def on_batch(self, batch: AnyBatch) -> bool:
        """Process a data batch; returns whether it is aborted, so that its records may be removed.

        Kafka: CleanedTransactionMetadata.onBatchRead.
        """
        if self._aborted:
            self._begin_up_to(batch.last_offset)
        if not batch.is_transactional:
            return False
        producer_id = batch.producer_id
        if producer_id in self._ongoing_aborted:
            self._seen_data.add(producer_id)
            return True
        self._ongoing_committed.add(producer_id)
        return False

    def on_control_batch(self, batch: AnyBatch) -> bool:
        """Process a control batch; returns whether its transaction permits its removal.

        Kafka: CleanedTransactionMetadata.onControlBatchRead.
        """
        self._begin_up_to(batch.last_offset)
        producer_id = batch.producer_id
        match control_record_type(batch):
            case None:  # emptied by an earlier compaction
                return True
            case ControlRecordType.ABORT:
                aborted = self._ongoing_aborted.pop(producer_id, None)
                if aborted is None or producer_id not in self._seen_data:
                    return True
                self._seen_data.discard(producer_id)
                if self.retain is not None:
                    self.retain(aborted)
                return False
            case ControlRecordType.COMMIT:
                had_data = producer_id in self._ongoing_committed
                self._ongoing_committed.discard(producer_id)
                return not had_data
            case _:
                return False

    def _begin_up_to(self, offset: int) -> None:
        while self._aborted and self._aborted[0][0] <= offset:
            _, transaction = heapq.heappop(self._aborted)
            self._ongoing_aborted.setdefault(transaction.producer_id, transaction)
