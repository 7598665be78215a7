"""The state of each idempotent or transactional producer of a log, and the rules for its appends.

    check (per batch with a producer id)                        otherwise
    ----------------------------------------------------------  -----------------------------
    producer epoch >= the last seen one                         INVALID_PRODUCER_EPOCH
    same epoch: first sequence follows the last one, wrapping   OUT_OF_ORDER_SEQUENCE_NUMBER
    newer epoch: first sequence is 0                            OUT_OF_ORDER_SEQUENCE_NUMBER
    while a transaction is open: the batch is transactional     INVALID_TXN_STATE
    marker: coordinator epoch >= the last seen one              TRANSACTION_COORDINATOR_FENCED

Sequences are checked for clients only. The leader has checked replicated batches, so that a follower only logs a broken
rule. An unknown producer may start with any sequence: its history may have been deleted.

Invariants: an entry keeps at most five batches, in order of sequence, all of its current epoch; a `ProducerAppendInfo`
changes nothing outside itself until `ProducerStateManager.update`.

Kafka: ProducerStateEntry, BatchMetadata, TxnMetadata, CompletedTxn, VerificationStateEntry, ProducerAppendInfo.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.new_tuple import new_tuple
from odradek.protocol.records.layout import (
    CONTROL_MASK,
    MAX_INT32,
    NO_PRODUCER_EPOCH,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TRANSACTIONAL_MASK,
)
from odradek.storage.append_info import AppendOrigin
from odradek.storage.offsets import UNKNOWN_OFFSET, UNKNOWN_POSITION, LogOffsetMetadata

if TYPE_CHECKING:
    from odradek.protocol.records.batch import AnyBatch

BATCHES_RETAINED: Final = 5
"""The largest max.in.flight.requests.per.connection of an idempotent producer. Kafka: NUM_BATCHES_TO_RETAIN."""

logger = logging.getLogger(__name__)


class BatchMetadata(NamedTuple):
    """One appended batch, for the detection of duplicates."""

    last_seq: int
    last_offset: int
    offset_delta: int
    timestamp: int

    @property
    def first_seq(self) -> int:
        return (self.last_seq - self.offset_delta) & MAX_INT32

    @property
    def first_offset(self) -> int:
        return self.last_offset - self.offset_delta


NO_BATCH: Final = BatchMetadata(last_seq=NO_SEQUENCE, last_offset=-1, offset_delta=0, timestamp=NO_TIMESTAMP)
"""The last batch of a producer that has none."""


class TxnMetadata:
    """A transaction of this partition: its first offset and, once its marker is written, its last."""

    __slots__ = ("first_offset", "last_offset", "producer_id")

    def __init__(self, producer_id: int, first_offset: LogOffsetMetadata, last_offset: int | None = None) -> None:
        self.producer_id = producer_id
        self.first_offset = first_offset
        self.last_offset = last_offset


class CompletedTxn(NamedTuple):
    """A transaction ended by a marker at `last_offset`."""

    producer_id: int
    first_offset: int
    last_offset: int
    is_aborted: bool


class ProducerStateEntry:
    """The state of one producer in one partition."""

    __slots__ = (
        "batches",
        "coordinator_epoch",
        "current_txn_first_offset",
        "last_timestamp",
        "producer_epoch",
        "producer_id",
    )

    def __init__(
        self,
        producer_id: int,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        coordinator_epoch: int = -1,
        last_timestamp: int = NO_TIMESTAMP,
        current_txn_first_offset: int = -1,
        batch: BatchMetadata | None = None,
    ) -> None:
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.coordinator_epoch = coordinator_epoch
        self.last_timestamp = last_timestamp
        self.current_txn_first_offset = current_txn_first_offset
        """-1 while no transaction is open."""
        self.batches: list[BatchMetadata] = [] if batch is None else [batch]

    @property
    def last_batch(self) -> BatchMetadata:
        return self.batches[-1] if self.batches else NO_BATCH

    @property
    def last_seq(self) -> int:
        return self.last_batch.last_seq

    @property
    def last_data_offset(self) -> int:
        return self.last_batch.last_offset

    def add_batch(self, producer_epoch: int, batch: BatchMetadata) -> None:
        if producer_epoch != self.producer_epoch:
            self.maybe_update_epoch(producer_epoch)
        self.batches.append(batch)
        if len(self.batches) > BATCHES_RETAINED:
            del self.batches[0]
        self.last_timestamp = batch.timestamp

    def is_next(self, batch: AnyBatch) -> bool:
        """Whether a client's batch goes on where the last one ended, outside of transactions: it breaks no rule."""
        batches = self.batches
        return (
            len(batches) > 0
            and batch.base_sequence == (batches[-1].last_seq + 1) & MAX_INT32
            and batch.producer_epoch == self.producer_epoch
            and self.current_txn_first_offset < 0
            and not batch.attributes & (TRANSACTIONAL_MASK | CONTROL_MASK)
        )

    def add_next(self, last_offset: int, offset_delta: int, timestamp: int) -> None:
        """Add a batch for which `is_next` is true, after it was written."""
        batches = self.batches
        last_seq = (batches[-1].last_seq + 1 + offset_delta) & MAX_INT32
        batches.append(new_tuple(BatchMetadata, (last_seq, last_offset, offset_delta, timestamp)))
        if len(batches) > BATCHES_RETAINED:
            del batches[0]
        self.last_timestamp = timestamp

    def maybe_update_epoch(self, producer_epoch: int) -> bool:
        """Set a new epoch and forget the batches of the old one; False if the epoch is the same."""
        if self.producer_epoch == producer_epoch:
            return False
        self.batches.clear()
        self.producer_epoch = producer_epoch
        return True

    def find_duplicate(self, producer_epoch: int, first_seq: int, last_seq: int) -> BatchMetadata | None:
        """The kept batch with exactly these sequences."""
        if producer_epoch != self.producer_epoch:
            return None
        for batch in self.batches:
            if batch.last_seq == last_seq and batch.first_seq == first_seq:
                return batch
        return None


class VerificationState:
    """The verification of a transactional producer's first append by the coordinator (KIP-890).

    The guard is compared by identity: an append with another guard was not verified.
    """

    __slots__ = ("epoch", "guard", "lowest_sequence", "timestamp")

    def __init__(self, timestamp: int, sequence: int, epoch: int) -> None:
        self.timestamp = timestamp
        self.lowest_sequence = sequence
        self.epoch = epoch
        self.guard = object()

    def maybe_update_lowest_sequence_and_epoch(self, sequence: int, epoch: int) -> None:
        if epoch == self.epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence
        if epoch > self.epoch:
            self.epoch = epoch
            self.lowest_sequence = sequence


class ProducerAppendInfo:
    """The batches of one producer in one append: checked against the current entry and collected, but not applied.
    `updated` is the entry that takes the place of the current one when they are written.
    """

    __slots__ = (
        "_current",
        "_origin",
        "_partition",
        "_verification",
        "is_transactional",
        "producer_id",
        "started_transactions",
        "updated",
    )

    def __init__(
        self,
        partition: object,
        producer_id: int,
        current: ProducerStateEntry | None,
        origin: AppendOrigin,
        verification: VerificationState | None = None,
    ) -> None:
        self._partition = partition
        self._origin = origin
        self._verification = verification
        self._current = current or ProducerStateEntry(producer_id)
        self.producer_id = producer_id
        self.started_transactions: list[TxnMetadata] = []
        self.is_transactional = False
        """The append has a transactional batch or a marker: its verification state is removed afterwards."""
        self.updated = ProducerStateEntry(
            producer_id,
            self._current.producer_epoch,
            self._current.coordinator_epoch,
            self._current.last_timestamp,
            self._current.current_txn_first_offset,
        )
        self.updated.batches = self._current.batches.copy()

    def append_data_batch(
        self,
        *,
        epoch: int,
        first_seq: int,
        last_seq: int,
        last_timestamp: int,
        first_offset: int,
        last_offset: int,
        is_transactional: bool,
        segment_base_offset: int = UNKNOWN_OFFSET,
        position: int = UNKNOWN_POSITION,
    ) -> None:
        """Check and collect one batch, which begins at `position` of its segment."""
        updated = self.updated
        if epoch < updated.producer_epoch:
            self._refuse_producer_epoch(epoch, first_offset)
        if self._origin is AppendOrigin.CLIENT:
            self._check_sequence(epoch, first_seq, first_offset)
        updated.add_batch(epoch, BatchMetadata(last_seq, last_offset, last_offset - first_offset, last_timestamp))
        self.is_transactional |= is_transactional
        is_open = updated.current_txn_first_offset >= 0
        if is_open and not is_transactional:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"Expected transactional write from producer {self.producer_id} at offset {first_offset} in partition "
                f"{self._partition}",
            )
        if is_transactional and not is_open:
            updated.current_txn_first_offset = first_offset
            begin = LogOffsetMetadata(first_offset, segment_base_offset, position)
            self.started_transactions.append(TxnMetadata(self.producer_id, begin))

    def append_end_txn_marker(
        self, *, is_abort: bool, coordinator_epoch: int, producer_epoch: int, offset: int, timestamp: int
    ) -> CompletedTxn | None:
        """Apply a marker. Returns the transaction that it completes, or None when none was open here."""
        updated = self.updated
        if producer_epoch < updated.producer_epoch:
            self._refuse_producer_epoch(producer_epoch, offset)
        self._check_coordinator_epoch(coordinator_epoch, offset)
        self.is_transactional = True
        first_offset = updated.current_txn_first_offset
        completed = CompletedTxn(self.producer_id, first_offset, offset, is_abort) if first_offset >= 0 else None
        updated.maybe_update_epoch(producer_epoch)
        updated.current_txn_first_offset = -1
        updated.coordinator_epoch = coordinator_epoch
        updated.last_timestamp = timestamp
        return completed

    def _refuse_producer_epoch(self, epoch: int, offset: int) -> None:
        """Kafka: ProducerAppendInfo.checkProducerEpoch."""
        message = (
            f"Epoch of producer {self.producer_id} at offset {offset} in {self._partition} is {epoch}, which is "
            f"smaller than the last seen epoch {self.updated.producer_epoch}"
        )
        self._refuse(ErrorCode.INVALID_PRODUCER_EPOCH, message, logging.WARNING)

    def _check_sequence(self, epoch: int, first_seq: int, offset: int) -> None:
        """Kafka: ProducerAppendInfo.checkSequence."""
        verification, updated = self._verification, self.updated
        if verification is not None and first_seq > verification.lowest_sequence:
            raise self._out_of_order(
                f"Out of order sequence number for producer {self.producer_id}",
                offset,
                f"{first_seq} (incoming seq. number), {verification.lowest_sequence} (earliest seen sequence)",
            )
        if epoch != updated.producer_epoch:
            if first_seq != 0 and updated.producer_epoch != NO_PRODUCER_EPOCH:
                raise self._out_of_order(
                    f"Invalid sequence number for new epoch of producer {self.producer_id}",
                    offset,
                    f"{epoch} (request epoch), {first_seq} (seq. number), {updated.producer_epoch} "
                    "(current producer epoch)",
                )
            return
        last_seq = updated.batches[-1].last_seq if updated.batches else NO_SEQUENCE
        is_next = first_seq == last_seq + 1 or (first_seq == 0 and last_seq == MAX_INT32)
        if not is_next and self._current.producer_epoch != NO_PRODUCER_EPOCH:
            raise self._out_of_order(
                f"Out of order sequence number for producer {self.producer_id}",
                offset,
                f"{first_seq} (incoming seq. number), {last_seq} (current end sequence number)",
            )

    def _out_of_order(self, problem: str, offset: int, numbers: str) -> KafkaError:
        return KafkaError(
            ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
            f"{problem} at offset {offset} in partition {self._partition}: {numbers}",
        )

    def _check_coordinator_epoch(self, coordinator_epoch: int, offset: int) -> None:
        if coordinator_epoch >= self.updated.coordinator_epoch:
            return
        message = (
            f"Invalid coordinator epoch for producerId {self.producer_id} at offset {offset} in partition "
            f"{self._partition}: {coordinator_epoch} (zombie), {self.updated.coordinator_epoch} (current)"
        )
        self._refuse(ErrorCode.TRANSACTION_COORDINATOR_FENCED, message, logging.INFO)

    def _refuse(self, code: ErrorCode, message: str, level_of_replicas: int) -> None:
        """Raise for an append on the leader; only log for a replicated batch, which the leader has written already."""
        if self._origin is not AppendOrigin.REPLICATION:
            raise KafkaError(code, message)
        logger.log(level_of_replicas, message)
