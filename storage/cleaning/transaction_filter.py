"""What compaction knows of transactions as it walks a log: which batches were aborted, and which markers may go.

The aborted transactions come from the transaction indexes, ordered by their first offset; each becomes ongoing when the
walk reaches it, and its batches are dropped until its marker ends it. A marker may go when the walk has seen no batch
of its transaction; until then the marker of an abort keeps its entry in the new transaction index. The state is carried
from segment to segment, for transactions span them.

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
    """Follows the transactions of a log, batch by batch in the order of offsets."""

    __slots__ = ("_aborted", "_ongoing_aborted", "_ongoing_committed", "_seen_data", "retain")

    def __init__(self, retain: Callable[[AbortedTxn], None] | None = None) -> None:
        self.retain = retain
        """Called with each aborted transaction that still has data when its marker is reached."""
        self._aborted: list[tuple[int, AbortedTxn]] = []
        self._ongoing_aborted: dict[int, AbortedTxn] = {}
        self._ongoing_committed: set[int] = set()
        self._seen_data: set[int] = set()

    def add_aborted(self, transactions: Iterable[AbortedTxn]) -> None:
        """Note aborted transactions of the stretch that is walked next; those known already do no harm."""
        for transaction in transactions:
            heapq.heappush(self._aborted, (transaction.first_offset, transaction))

    def on_batch(self, batch: AnyBatch) -> bool:
        """Pass a batch of data; returns whether it was aborted, so that its records may go."""
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
        """Pass a control batch; returns whether it may go, as far as its transaction is concerned."""
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
