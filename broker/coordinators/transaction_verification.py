"""Verifies transactional appends before they are made (KIP-890, part 1).

A delayed request could arrive after the end of its transaction and begin one in the log that is never ended: the last
stable offset would not move any more. So the first append of a transaction to a partition waits until the transaction
coordinator has confirmed that the partition was added. The log creates a *guard* before the coordinator is asked, and
accepts the append only with that guard. The guard becomes invalid when a transaction begins or ends there meanwhile.

Kafka: ReplicaManager.handleProduceAppend, ReplicaManager.maybeStartTransactionVerificationForPartitions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from odradek.broker.fetch.results import LogAppendResult
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch import batches
from odradek.protocol.records.layout import NO_SEQUENCE
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.config.broker_config import BrokerConfig
    from odradek.broker.coordinators.add_partitions_to_txn_manager import AddPartitionsToTxnManager
    from odradek.broker.replica_manager.replica_manager import ReplicaManager
    from odradek.coordinator.ports import OnVerified, TransactionVerifier

_E = ErrorCode


UNVERIFIED = frozenset(
    {
        _E.CONCURRENT_TRANSACTIONS,
        _E.NETWORK_EXCEPTION,
        _E.COORDINATOR_LOAD_IN_PROGRESS,
        _E.COORDINATOR_NOT_AVAILABLE,
        _E.NOT_COORDINATOR,
    }
)
"""Errors that do not concern the transaction. Not every producer retries a Produce after them, so producers get
NOT_ENOUGH_REPLICAS, after which all retry without a Metadata request."""

Guards = Mapping[TopicPartition, object | None]
OnAllVerified = Callable[[Mapping[TopicPartition, ErrorCode], Guards], None]
"""The partitions that must not be appended to, and the guards of those that may."""


class TransactionVerification:
    """Verifies appends to partitions that this broker leads."""

    def __init__(
        self, config: BrokerConfig, replica_manager: ReplicaManager, manager: AddPartitionsToTxnManager
    ) -> None:
        self._config = config
        self._replica_manager = replica_manager
        self.manager = manager

    def verify_records(
        self,
        transactional_id: str,
        records: Mapping[TopicPartition, memoryview],
        on_verified: Callable[[Mapping[TopicPartition, LogAppendResult], Guards], None],
        *,
        knows_abortable_error: bool,
    ) -> None:
        """Verify the partitions of a Produce. `on_verified` gets the results of refused partitions, and the guards.

        Raises: KafkaError INVALID_PRODUCER_ID_MAPPING for records of more than one transactional producer.
        """
        producers: set[tuple[int, int]] = set()
        sequences: dict[TopicPartition, int] = {}
        for topic_partition, data in records.items():
            first_sequence = None
            for batch in batches(data):
                if first_sequence is None:
                    first_sequence = batch.base_sequence
                if batch.producer_id >= 0 and batch.is_transactional:
                    producers.add((batch.producer_id, batch.producer_epoch))
                    sequences[topic_partition] = first_sequence
        if not producers:
            on_verified({}, {})
            return
        if len(producers) > 1:
            raise KafkaError(
                _E.INVALID_PRODUCER_ID_MAPPING, "Transactional records contained more than one producer ID"
            )
        ((producer_id, producer_epoch),) = producers
        self._verify(
            transactional_id,
            producer_id,
            producer_epoch,
            sequences,
            lambda errors, guards: on_verified({tp: _refusal(error) for tp, error in errors.items()}, guards),
            knows_abortable_error=knows_abortable_error,
        )

    def of_topic(self, topic: str) -> TransactionVerifier:
        """The verifier of appends that a coordinator makes to an internal topic for a producer."""

        def verify(
            partition: int,
            transactional_id: str,
            producer_id: int,
            producer_epoch: int,
            on_verified: OnVerified,
            *,
            knows_abortable_error: bool,
        ) -> None:
            topic_partition = TopicPartition(topic, partition)
            self._verify(
                transactional_id,
                producer_id,
                producer_epoch,
                {topic_partition: NO_SEQUENCE},
                lambda errors, guards: on_verified(errors.get(topic_partition, _E.NONE), guards.get(topic_partition)),
                knows_abortable_error=knows_abortable_error,
            )

        return verify

    def _verify(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        sequences: Mapping[TopicPartition, int],
        on_verified: OnAllVerified,
        *,
        knows_abortable_error: bool,
    ) -> None:
        if not self._config.transaction_partition_verification_enable:
            on_verified({}, {})
            return
        errors: dict[TopicPartition, ErrorCode] = {}
        guards: dict[TopicPartition, object] = {}
        for topic_partition, sequence in sequences.items():
            try:
                partition = self._replica_manager.partition(topic_partition)
                guard = partition.maybe_start_transaction_verification(producer_id, sequence, producer_epoch)
            except KafkaError as error:
                errors[topic_partition] = error.code
                continue
            if guard is not None:
                guards[topic_partition] = guard
        if not guards:
            on_verified(errors, {})
            return
        self.manager.verify(
            transactional_id,
            producer_id,
            producer_epoch,
            list(guards),
            lambda unverified: on_verified({**errors, **unverified}, guards),
            knows_abortable_error=knows_abortable_error,
        )


def _refusal(error: ErrorCode) -> LogAppendResult:
    if error == _E.INVALID_TXN_STATE:
        return LogAppendResult(error=error, error_message="Partition was not added to the transaction")
    if error in UNVERIFIED:
        return LogAppendResult(
            error=_E.NOT_ENOUGH_REPLICAS,
            error_message="Unable to verify the partition has been added to the transaction. Underlying error: "
            f"{error.name}",
        )
    return LogAppendResult(error=error)
