"""The transactional ids of the partitions of `__transaction_state` that this broker leads, in memory and in the log.

A change of an id's metadata is appended to the log first, and applied in memory when it is committed; until then it is
pending. If the append fails, the change is dropped. If the *coordinator epoch* (the leader epoch of the partition) has
changed meanwhile, memory is not changed.

A loaded partition may hold transactions in PrepareCommit or PrepareAbort. When the partition is loaded, `on_unfinished`
gets them, so that their markers are written.

Kafka: TransactionStateManager.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from odradek.coordinator.partitioning import partition_for
from odradek.coordinator.ports import BATCH_OVERHEAD_BYTES, TOMBSTONE_OVERHEAD_BYTES, CoordinatorLog
from odradek.coordinator.runtime import LoadRefusedError, PartitionOwnership, records_of
from odradek.coordinator.transaction.config import TransactionConfig
from odradek.coordinator.transaction.records import (
    TransactionRecord,
    read_transaction_key,
    read_transaction_value,
    transaction_key,
    transaction_value,
)
from odradek.coordinator.transaction.states import EXPIRABLE, PREPARED, TransactionState
from odradek.coordinator.transaction.transaction_metadata import TransactionMetadata, TransitMetadata
from odradek.coordinator.versioned_messages import CoordinatorRecordError
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.errors import CorruptRecordError
from odradek.protocol.records.record import SimpleRecord
from odradek.timer.clock import Clock
from odradek.timer.sliced_work import SlicedWork, Steps, Wait
from odradek.timer.system_timer import SystemTimer

_log = logging.getLogger(__name__)

TOPIC = "__transaction_state"

_E = ErrorCode

APPEND_ERRORS: Mapping[ErrorCode, ErrorCode] = {
    _E.UNKNOWN_TOPIC_OR_PARTITION: _E.COORDINATOR_NOT_AVAILABLE,
    _E.NOT_ENOUGH_REPLICAS: _E.COORDINATOR_NOT_AVAILABLE,
    _E.NOT_ENOUGH_REPLICAS_AFTER_APPEND: _E.COORDINATOR_NOT_AVAILABLE,
    _E.REQUEST_TIMED_OUT: _E.COORDINATOR_NOT_AVAILABLE,
    _E.NOT_LEADER_OR_FOLLOWER: _E.NOT_COORDINATOR,
    _E.KAFKA_STORAGE_ERROR: _E.NOT_COORDINATOR,
    _E.MESSAGE_TOO_LARGE: _E.UNKNOWN_SERVER_ERROR,
    _E.RECORD_LIST_TOO_LARGE: _E.UNKNOWN_SERVER_ERROR,
}
"""The error for the client when the append of a change failed; other errors are passed on."""


class Owned(NamedTuple):
    """Metadata in memory, and the epoch under which this broker coordinates it."""

    coordinator_epoch: int
    metadata: TransactionMetadata


@dataclass(slots=True)
class _Partition:
    """A partition of the topic that this broker leads, and its transactions by transactional id.

    Kafka: TxnMetadataCacheEntry.
    """

    coordinator_epoch: int
    transactions: dict[str, TransactionMetadata] = field(default_factory=dict)


class TransactionStateManager:
    """Changes transactions in the log and in memory. `on_unfinished` is called with each loaded transaction in
    PrepareCommit or PrepareAbort, its coordinator epoch and the change that completes it; `on_unload` with each
    partition that is unloaded.
    """

    def __init__(
        self,
        *,
        config: TransactionConfig,
        log: CoordinatorLog,
        clock: Clock,
        timer: SystemTimer,
        on_unfinished: Callable[[int, TransactionMetadata, TransitMetadata], None],
        on_unload: Callable[[int], None],
    ) -> None:
        self._config = config
        self._records = log
        self._clock = clock
        self._on_unfinished = on_unfinished
        self._on_unload = on_unload
        self._partitions: dict[int, _Partition] = {}
        self.observer: Callable[[TransactionMetadata], None] | None = None
        """Called with each transaction whose state or partitions have changed in the log."""
        self.topic_partition_count: int | None = None
        """Partitions of the topic, as they were read for the last election; None if they were not read."""
        self.work = SlicedWork(timer, clock)
        """Sweeps over all transactions; separate from loading, so that a sweep does not wait for a load."""
        self.ownership = PartitionOwnership(
            TOPIC, SlicedWork(timer, clock), load=self._load, on_unload=self._unload, on_loaded=self._loaded
        )

    # -- partitions ------------------------------------------------------------------------------------------

    def partition_for(self, transactional_id: str) -> int:
        return partition_for(transactional_id, self._records.partition_count)

    @property
    def is_anything_loading(self) -> bool:
        return self.ownership.is_anything_loading

    def elect(self, partition: int, epoch: int) -> None:
        """This broker leads the partition: load it, also if it was loaded in another epoch.

        Kafka: TransactionStateManager.loadTransactionsForTxnTopicPartition.
        """
        self.ownership.elect_anew(partition, epoch)

    def resign(self, partition: int) -> None:
        """This broker no longer leads the partition. As in Kafka no epoch is checked.

        Kafka: TransactionStateManager.removeTransactionsForTxnTopicPartition.
        """
        self.ownership.resign(partition, None)

    def resign_all(self) -> None:
        self.ownership.resign_all()

    # -- the cache -------------------------------------------------------------------------------------------

    def find(self, transactional_id: str) -> Owned | ErrorCode | None:
        """The id's metadata; None if it has none; the error if this broker does not coordinate it or is loading it.

        Kafka: TransactionStateManager.getTransactionState.
        """
        number = self.partition_for(transactional_id)
        if self.ownership.is_loading(number):
            return _E.COORDINATOR_LOAD_IN_PROGRESS
        partition = self._partitions.get(number)
        if partition is None:
            return _E.NOT_COORDINATOR
        metadata = partition.transactions.get(transactional_id)
        return None if metadata is None else Owned(partition.coordinator_epoch, metadata)

    def add(self, metadata: TransactionMetadata) -> Owned:
        """Add the metadata of an id for which `find` has just returned None.

        Kafka: TransactionStateManager.putTransactionStateIfNotExists.
        """
        partition = self._partitions[self.partition_for(metadata.transactional_id)]
        partition.transactions[metadata.transactional_id] = metadata
        return Owned(partition.coordinator_epoch, metadata)

    @property
    def transactions(self) -> Iterator[TransactionMetadata]:
        """All transactions in memory, of loaded and loading partitions."""
        for partition in self._partitions.values():
            yield from partition.transactions.values()

    # -- writing ---------------------------------------------------------------------------------------------

    def append(
        self,
        transactional_id: str,
        coordinator_epoch: int,
        transit: TransitMetadata,
        done: Callable[[ErrorCode], None],
        *,
        keep_pending_on: frozenset[ErrorCode] = frozenset(),
    ) -> None:
        """Append a prepared change and apply it when committed; `done` gets the error for the client.

        After an error in `keep_pending_on` the change stays pending, because the caller retries.
        Kafka: TransactionStateManager.appendTransactionToLog.
        """
        owned = self.find(transactional_id)
        if not isinstance(owned, Owned):
            done(_E.NOT_COORDINATOR if owned is None else owned)
            return
        if owned.coordinator_epoch != coordinator_epoch:
            done(_E.NOT_COORDINATOR)
            return

        def appended(error: ErrorCode, _: int) -> None:
            done(self._appended(transactional_id, coordinator_epoch, transit, error, keep_pending_on))

        record = SimpleRecord(self._clock.time_ms(), transaction_key(transactional_id), transaction_value(transit))
        self._records.append(self.partition_for(transactional_id), [record], appended, timeout_ms=transit.timeout_ms)

    def _appended(
        self,
        transactional_id: str,
        coordinator_epoch: int,
        transit: TransitMetadata,
        error: ErrorCode,
        keep_pending_on: frozenset[ErrorCode],
    ) -> ErrorCode:
        owned = self.find(transactional_id)
        is_current = isinstance(owned, Owned) and owned.coordinator_epoch == coordinator_epoch
        if error == _E.NONE:
            if isinstance(owned, Owned) and is_current:
                owned.metadata.complete_transition_to(transit)
                if self.observer is not None:
                    self.observer(owned.metadata)
                return _E.NONE
            return owned if isinstance(owned, ErrorCode) else _E.NOT_COORDINATOR
        answer = APPEND_ERRORS.get(error, error)
        _log.info("Failed to append %s of transactional id %s: %s", transit.state, transactional_id, error.name)
        if isinstance(owned, Owned) and is_current and answer not in keep_pending_on:
            owned.metadata.pending_state = None
        return answer

    # -- expiry of ids ---------------------------------------------------------------------------------------

    def expire(self) -> None:
        """Start to remove the ids that have not been used for `transactional.id.expiration.ms`, in slices.

        Kafka: TransactionStateManager.removeExpiredTransactionalIds.
        """
        self.work.submit(self._expiry_steps())

    def _expiry_steps(self) -> Steps:
        for number, partition in list(self._partitions.items()):
            limit = self._records.max_batch_bytes(number)
            if limit is None:
                _log.warning("Not expiring transactional ids of %s-%d: this broker has no log for it", TOPIC, number)
                continue
            expired: dict[str, int] = {}
            size = BATCH_OVERHEAD_BYTES
            for metadata in list(partition.transactions.values()):
                yield None
                if self._partitions.get(number) is not partition:
                    break  # unloaded; its next coordinator expires the ids, also if that is this broker again
                if not self._is_expired(metadata):
                    continue
                tombstone_size = TOMBSTONE_OVERHEAD_BYTES + len(transaction_key(metadata.transactional_id))
                if expired and size + tombstone_size > limit:
                    self._write_tombstones(number, partition, expired)
                    expired, size = {}, BATCH_OVERHEAD_BYTES
                expired[metadata.transactional_id] = metadata.prepare_dead().producer_epoch
                size += tombstone_size
            else:
                if expired:
                    self._write_tombstones(number, partition, expired)

    def _is_expired(self, metadata: TransactionMetadata) -> bool:
        return (
            metadata.pending_state is None
            and metadata.state in EXPIRABLE
            and metadata.last_update_timestamp_ms <= self._clock.time_ms() - self._config.transactional_id_expiration_ms
        )

    def _write_tombstones(self, number: int, partition: _Partition, expired: Mapping[str, int]) -> None:
        """`expired`: producer epochs by transactional id. Kafka: writeTombstonesForExpiredTransactionalIds."""
        now_ms = self._clock.time_ms()
        records = [SimpleRecord(now_ms, transaction_key(transactional_id), None) for transactional_id in expired]

        def appended(error: ErrorCode, _: int) -> None:
            if self._partitions.get(number) is not partition:
                return
            for transactional_id, producer_epoch in expired.items():
                metadata = partition.transactions[transactional_id]
                if (
                    error == _E.NONE
                    and metadata.pending_state is TransactionState.DEAD
                    and metadata.producer_epoch == producer_epoch
                ):
                    del partition.transactions[transactional_id]
                else:
                    _log.warning("Failed to remove expired transactional id %s: %s", transactional_id, error.name)
                    metadata.pending_state = None

        self._records.append(number, records, appended, timeout_ms=self._config.request_timeout_ms)

    # -- loading and unloading -------------------------------------------------------------------------------

    def _load(self, number: int) -> Steps:
        """Keep the last value of each key as bytes, then decode these.

        Kafka: TransactionStateManager.loadTransactionMetadata.
        """
        self._validate_partition_count_is_stable()
        partition = self._partitions[number] = _Partition(self.ownership.epoch(number))
        values: dict[str, bytes] = {}
        try:
            yield from self._replay(number, values)
        except (KafkaError, CorruptRecordError, OSError) as error:
            _log.error("Error loading %s-%d: %s. The records read before the error are kept", TOPIC, number, error)
        for transactional_id, value in values.items():
            try:
                partition.transactions[transactional_id] = _loaded(transactional_id, read_transaction_value(value))
            except CoordinatorRecordError as error:
                _log.error("Ignoring transactional id %s: %s", transactional_id, error)
            yield None

    def _validate_partition_count_is_stable(self) -> None:
        """Raises: LoadRefusedError if the topic has another number of partitions than at this broker's start. A broker
        that has started since then finds a transactional id in another partition.

        Kafka: TransactionStateManager.validateTransactionTopicPartitionCountIsStable.
        """
        expected, found = self._records.partition_count, self.topic_partition_count
        if found not in (None, expected):
            raise LoadRefusedError(f"Transaction topic number of partitions has changed from {expected} to {found}")

    def _replay(self, number: int, values: dict[str, bytes]) -> Steps:
        for batch in self._records.read_all(number):
            if isinstance(batch, Wait):
                yield batch
                continue
            for record in records_of(batch):
                transactional_id = self._transactional_id(record.key)
                if transactional_id is None:
                    _log.warning("Ignoring the record at offset %d of %s-%d: unknown key", record.offset, TOPIC, number)
                elif record.value is None:
                    values.pop(transactional_id, None)
                else:
                    values[transactional_id] = record.value
                yield None

    @staticmethod
    def _transactional_id(key: bytes | None) -> str | None:
        try:
            return None if key is None else read_transaction_key(key)
        except CoordinatorRecordError:
            return None

    def _loaded(self, number: int) -> None:
        partition = self._partitions[number]
        for metadata in list(partition.transactions.values()):
            if metadata.state in PREPARED:
                transit = metadata.prepare_complete(self._clock.time_ms())
                self._on_unfinished(partition.coordinator_epoch, metadata, transit)

    def _unload(self, number: int) -> None:
        self._partitions.pop(number, None)
        self._on_unload(number)


def _loaded(transactional_id: str, record: TransactionRecord) -> TransactionMetadata:
    return TransactionMetadata(
        transactional_id,
        producer_id=record.producer_id,
        producer_epoch=record.producer_epoch,
        timeout_ms=record.timeout_ms,
        state=record.state,
        topic_partitions=[topic_partition for topic in record.partitions for topic_partition in topic],
        start_timestamp_ms=record.start_timestamp_ms,
        last_update_timestamp_ms=record.last_update_timestamp_ms,
    )
