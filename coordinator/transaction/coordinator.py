"""The transaction coordinator's API for the request handlers: one method per request.

The handlers authorize, pass only partitions that exist, and shape responses for the version; all decisions are made
here and below. Responses come by callback: at once, or when the change is committed to `__transaction_state`.

A producer is identified by its id and epoch. A request with another id gets INVALID_PRODUCER_ID_MAPPING, one with
another epoch PRODUCER_FENCED, and one that arrives while a change is pending CONCURRENT_TRANSACTIONS.

InitProducerId during an Ongoing transaction, and the timeout of a transaction, fence the producer: the epoch is bumped
and the transaction is aborted with the new epoch, so that the old producer cannot write records after the markers.
InitProducerId gets CONCURRENT_TRANSACTIONS; when the client retries, it gets the epoch after that.

Kafka: TransactionCoordinator.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Generator
from typing import NamedTuple

from odradek.coordinator.ports import CoordinatorLog, ProducerIds
from odradek.coordinator.transaction.config import TransactionConfig
from odradek.coordinator.transaction.markers import MarkerChannel, MarkerSender
from odradek.coordinator.transaction.states import (
    END_ANSWERS,
    EXPIRABLE,
    PREPARED,
    IllegalTransitionError,
    TransactionState,
)
from odradek.coordinator.transaction.transaction_metadata import (
    TransactionMetadata,
    TransitMetadata,
    is_epoch_exhausted,
)
from odradek.coordinator.transaction.transaction_state_manager import TOPIC, Owned, TransactionStateManager
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_transactions import TransactionState as DescribedTransaction
from odradek.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from odradek.protocol.records.layout import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import Clock
from odradek.timer.periodic import PeriodicTask
from odradek.timer.sliced_work import Steps
from odradek.timer.system_timer import SystemTimer

_log = logging.getLogger(__name__)

_S = TransactionState
_E = ErrorCode

OnError = Callable[[ErrorCode], None]


class ProducerIdAndEpoch(NamedTuple):
    """Identifies a producer. Without a producer id and epoch, both are -1."""

    producer_id: int
    producer_epoch: int


NO_PRODUCER = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)

OnProducer = Callable[[ErrorCode, ProducerIdAndEpoch], None]


class TransactionCoordinator:
    """Transactions, for the partitions of `__transaction_state` that this broker leads."""

    def __init__(
        self,
        *,
        config: TransactionConfig,
        log: CoordinatorLog,
        clock: Clock,
        timer: SystemTimer,
        producer_ids: ProducerIds,
        channel: MarkerChannel,
    ) -> None:
        self._config = config
        self._clock = clock
        self._producer_ids = producer_ids
        self.states = TransactionStateManager(
            config=config,
            log=log,
            clock=clock,
            timer=timer,
            on_unfinished=lambda *transaction: self.markers.add(*transaction),
            on_unload=lambda partition: self.markers.forget_partition(partition),
        )
        self.markers = MarkerSender(self.states, channel, timer, clock)
        self._is_active = False
        self._sweeps = (
            PeriodicTask(
                timer,
                "transaction-abort",
                config.transaction_abort_timed_out_transaction_cleanup_interval_ms,
                self.abort_timed_out,
            ),
            PeriodicTask(
                timer,
                "transactional-id-expiration",
                config.transaction_remove_expired_transaction_cleanup_interval_ms,
                self.states.expire,
            ),
        )

    # -- start, stop, elections ------------------------------------------------------------------------------

    def startup(self) -> None:
        """Begin to serve."""
        self._is_active = True
        for sweep in self._sweeps:
            sweep.start()

    def shutdown(self) -> None:
        """Stop serving."""
        self._is_active = False
        for sweep in self._sweeps:
            sweep.cancel()
        self.states.resign_all()

    def topic_partition_count_read(self, count: int | None) -> None:
        """The number of partitions that `__transaction_state` has, before `on_elected`; None if it has no node.

        Where it is not the number of the broker's start, elected partitions are not loaded.
        """
        self.states.topic_partition_count = count

    def on_elected(self, partition: int, epoch: int) -> None:
        """This broker has become leader of a partition of `__transaction_state`: load its transactions.

        Kafka: TransactionCoordinator.onElection.
        """
        self.states.elect(partition, epoch)

    def on_resigned(self, partition: int, epoch: int | None) -> None:
        """This broker is no longer the leader (epoch None: the replica is deleted): unload its transactions.

        Kafka: TransactionCoordinator.onResignation.
        """
        self.states.resign(partition)

    def partition_for(self, transactional_id: str) -> int:
        """The partition of `__transaction_state` whose leader coordinates the id."""
        return self.states.partition_for(transactional_id)

    # -- InitProducerId --------------------------------------------------------------------------------------

    def init_producer_id(
        self, transactional_id: str | None, timeout_ms: int, expected: ProducerIdAndEpoch | None, respond: OnProducer
    ) -> None:
        """Give a producer its id and epoch. `expected`: its current id and epoch (KIP-360), None for a new producer.

        Kafka: TransactionCoordinator.handleInitProducerId.
        """
        if transactional_id is None:
            self._with_producer_id(respond, lambda fresh: respond(_E.NONE, ProducerIdAndEpoch(fresh, 0)))
        elif not transactional_id:
            respond(_E.INVALID_REQUEST, NO_PRODUCER)
        elif not 0 < timeout_ms <= self._config.transaction_max_timeout_ms:
            respond(_E.INVALID_TRANSACTION_TIMEOUT, NO_PRODUCER)
        else:
            self._init(transactional_id, timeout_ms, expected, respond, None)

    def _init(
        self,
        transactional_id: str,
        timeout_ms: int,
        expected: ProducerIdAndEpoch | None,
        respond: OnProducer,
        fresh_id: int | None,
    ) -> None:
        """One attempt. If it needs a new producer id, it starts again when it has one: the state may have changed."""
        owned = self.states.find(transactional_id)
        if isinstance(owned, ErrorCode):
            respond(owned, NO_PRODUCER)
            return
        if fresh_id is None and (owned is None or _needs_new_id(owned.metadata, expected)):
            self._with_producer_id(
                respond, lambda fresh: self._init(transactional_id, timeout_ms, expected, respond, fresh)
            )
            return
        now_ms = self._clock.time_ms()
        if owned is None:
            assert fresh_id is not None
            owned = self.states.add(
                TransactionMetadata(
                    transactional_id, producer_id=fresh_id, timeout_ms=timeout_ms, last_update_timestamp_ms=now_ms
                )
            )
        transit = _prepare_init(owned.metadata, timeout_ms, expected, fresh_id, now_ms)
        if isinstance(transit, ErrorCode):
            respond(transit, NO_PRODUCER)
        elif transit.state is _S.PREPARE_EPOCH_FENCE:
            self._abort_fenced(
                transactional_id,
                transit,
                lambda error: respond(_E.CONCURRENT_TRANSACTIONS if error == _E.NONE else error, NO_PRODUCER),
            )
        else:
            self._append_init(transactional_id, owned.coordinator_epoch, transit, respond)

    def _append_init(
        self, transactional_id: str, coordinator_epoch: int, transit: TransitMetadata, respond: OnProducer
    ) -> None:
        def appended(error: ErrorCode) -> None:
            if error == _E.NONE:
                _log.info(
                    "Initialized transactionalId %s with producerId %d and producer epoch %d on partition %s-%d",
                    transactional_id,
                    transit.producer_id,
                    transit.producer_epoch,
                    TOPIC,
                    self.states.partition_for(transactional_id),
                )
                respond(error, ProducerIdAndEpoch(transit.producer_id, transit.producer_epoch))
            else:
                respond(error, NO_PRODUCER)

        self.states.append(transactional_id, coordinator_epoch, transit, appended)

    def _with_producer_id(self, respond: OnProducer, use: Callable[[int], None]) -> None:
        def given(result: int | ErrorCode) -> None:
            if isinstance(result, ErrorCode):
                respond(result, NO_PRODUCER)
            else:
                use(result)

        self._producer_ids(given)

    # -- partitions ------------------------------------------------------------------------------------------

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        topic_partitions: Collection[TopicPartition],
        respond: OnError,
    ) -> None:
        """Add the partitions to the producer's transaction; the first ones begin it.

        Kafka: TransactionCoordinator.handleAddPartitionsToTransaction.
        """
        owned = self._owned_by(transactional_id, producer)
        if isinstance(owned, ErrorCode):
            respond(owned)
            return
        metadata = owned.metadata
        if metadata.pending_state is not None or metadata.state in PREPARED:
            respond(_E.CONCURRENT_TRANSACTIONS)
        elif metadata.state is _S.ONGOING and metadata.topic_partitions.issuperset(topic_partitions):
            respond(_E.NONE)
        else:
            transit = metadata.prepare_add_partitions(topic_partitions, self._clock.time_ms())
            self.states.append(transactional_id, owned.coordinator_epoch, transit, respond)

    def verify_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, topic_partitions: Collection[TopicPartition]
    ) -> dict[TopicPartition, ErrorCode]:
        """Whether each partition is part of the producer's transaction (KIP-890).

        A pending change is not an error: the log checks the append again.
        Kafka: TransactionCoordinator.handleVerifyPartitionsInTransaction.
        """
        owned = self._owned_by(transactional_id, producer)
        if isinstance(owned, ErrorCode):
            return dict.fromkeys(topic_partitions, owned)
        if owned.metadata.state in PREPARED:
            return dict.fromkeys(topic_partitions, _E.CONCURRENT_TRANSACTIONS)
        added = owned.metadata.topic_partitions
        return {tp: _E.NONE if tp in added else _E.TRANSACTION_ABORTABLE for tp in topic_partitions}

    def _owned_by(self, transactional_id: str, producer: ProducerIdAndEpoch) -> Owned | ErrorCode:
        """The transaction if it belongs to this producer id and epoch, else the error."""
        if not transactional_id:
            return _E.INVALID_REQUEST
        owned = self.states.find(transactional_id)
        if isinstance(owned, ErrorCode):
            return owned
        if owned is None or owned.metadata.producer_id != producer.producer_id:
            return _E.INVALID_PRODUCER_ID_MAPPING
        return owned if owned.metadata.producer_epoch == producer.producer_epoch else _E.PRODUCER_FENCED

    # -- EndTxn ----------------------------------------------------------------------------------------------

    def end_transaction(
        self, transactional_id: str, producer: ProducerIdAndEpoch, committed: bool, respond: OnError
    ) -> None:
        """Commit or abort the transaction. Responds when PrepareCommit or PrepareAbort is committed to the log; the
        markers follow. Kafka: TransactionCoordinator.handleEndTransaction.
        """
        owned = self._owned_by(transactional_id, producer)
        if isinstance(owned, ErrorCode):
            respond(owned)
            return
        metadata = owned.metadata
        if metadata.pending_state is not None:
            respond(_E.CONCURRENT_TRANSACTIONS)
        elif metadata.state is _S.ONGOING:
            state = _S.PREPARE_COMMIT if committed else _S.PREPARE_ABORT
            transit = metadata.prepare_abort_or_commit(state, self._clock.time_ms())
            self._append_end(transactional_id, owned.coordinator_epoch, transit, respond)
        else:
            respond(END_ANSWERS[metadata.state][committed])

    def _abort_fenced(self, transactional_id: str, fence: TransitMetadata, respond: OnError) -> None:
        """Abort the transaction of a producer that has just been fenced, with the bumped epoch."""
        owned = self.states.find(transactional_id)
        assert isinstance(owned, Owned), "the caller has just prepared the fence"
        owned.metadata.begin_fenced_abort(fence.producer_epoch)
        transit = owned.metadata.prepare_abort_or_commit(_S.PREPARE_ABORT, self._clock.time_ms())

        def appended(error: ErrorCode) -> None:
            if error != _E.NONE:
                current = self.states.find(transactional_id)
                if isinstance(current, Owned) and current.coordinator_epoch == owned.coordinator_epoch:
                    current.metadata.has_failed_epoch_fence = True
                    _log.warning(
                        "The bumped producer epoch of transactional id %s could not be appended: %s. The next attempt "
                        "uses the same epoch",
                        transactional_id,
                        error.name,
                    )
            respond(error)

        self._append_end(transactional_id, owned.coordinator_epoch, transit, appended)

    def _append_end(
        self, transactional_id: str, coordinator_epoch: int, transit: TransitMetadata, respond: OnError
    ) -> None:
        def appended(error: ErrorCode) -> None:
            if error != _E.NONE:
                respond(error)
                return
            owned = self.states.find(transactional_id)
            assert isinstance(owned, Owned), "the append has just updated it"
            metadata = owned.metadata
            completion = metadata.prepare_complete(self._clock.time_ms())
            respond(error)
            self.markers.add(coordinator_epoch, metadata, completion)

        self.states.append(transactional_id, coordinator_epoch, transit, appended)

    # -- timeouts --------------------------------------------------------------------------------------------

    def abort_timed_out(self) -> None:
        """Abort the transactions that are open longer than their `transaction.timeout.ms`, in slices.

        Kafka: TransactionCoordinator.abortTimedOutTransactions.
        """
        self.states.work.submit(self._timeout_steps())

    def _timeout_steps(self) -> Steps:
        for metadata in list(self.states.transactions):
            owned = self.states.find(metadata.transactional_id)
            if isinstance(owned, Owned) and owned.metadata is metadata and self._has_timed_out(metadata):
                self._abort_timed_out(metadata)
            yield None

    def _abort_timed_out(self, metadata: TransactionMetadata) -> None:
        transactional_id = metadata.transactional_id

        def aborted(error: ErrorCode) -> None:
            if error == _E.NONE:
                _log.info("Aborted the transaction of transactional id %s: it has timed out", transactional_id)
            else:
                _log.warning(
                    "Failed to abort the timed out transaction of transactional id %s: %s", transactional_id, error.name
                )

        self._abort_fenced(transactional_id, metadata.prepare_fence_producer_epoch(), aborted)

    def _has_timed_out(self, metadata: TransactionMetadata) -> bool:
        return (
            metadata.state is _S.ONGOING
            and metadata.pending_state is None
            and metadata.start_timestamp_ms + metadata.timeout_ms < self._clock.time_ms()
        )

    # -- administration --------------------------------------------------------------------------------------

    def describe(self, transactional_id: str) -> DescribedTransaction:
        """One transaction of a DescribeTransactions response."""
        if not self._is_active:
            return DescribedTransaction(error_code=_E.COORDINATOR_NOT_AVAILABLE, transactional_id=transactional_id)
        if not transactional_id:
            return DescribedTransaction(error_code=_E.INVALID_REQUEST, transactional_id=transactional_id)
        owned = self.states.find(transactional_id)
        if isinstance(owned, ErrorCode):
            return DescribedTransaction(error_code=owned, transactional_id=transactional_id)
        if owned is None:
            return DescribedTransaction(error_code=_E.TRANSACTIONAL_ID_NOT_FOUND, transactional_id=transactional_id)
        from odradek.coordinator.transaction.listing import described  # rarely needed: not imported at start-up

        return described(owned.metadata)

    def list(self, request: ListTransactionsRequest) -> Generator[None, None, ListTransactionsResponse]:
        """The transactions that pass the request's filters, in steps."""
        if not self._is_active:
            return ListTransactionsResponse(error_code=_E.COORDINATOR_NOT_AVAILABLE)
        if self.states.is_anything_loading:
            return ListTransactionsResponse(error_code=_E.COORDINATOR_LOAD_IN_PROGRESS)
        from odradek.coordinator.transaction.listing import list_of

        return (yield from list_of(self.states.transactions, request, self._clock.time_ms()))


def _needs_new_id(metadata: TransactionMetadata, expected: ProducerIdAndEpoch | None) -> bool:
    """Whether the producer id has no epoch left, and the requesting producer is not fenced itself."""
    return (
        metadata.pending_state is None
        and metadata.state in EXPIRABLE
        and metadata.is_epoch_exhausted
        and (
            expected is None
            or (expected.producer_epoch == metadata.producer_epoch and _is_valid_producer(metadata, expected))
        )
    )


def _prepare_init(
    metadata: TransactionMetadata,
    timeout_ms: int,
    expected: ProducerIdAndEpoch | None,
    fresh_id: int | None,
    now_ms: int,
) -> TransitMetadata | ErrorCode:
    """The change to the metadata that InitProducerId makes, or the error for the producer.

    Kafka: TransactionCoordinator.prepareInitProducerIdTransit.
    """
    if metadata.pending_state is not None:
        return _E.CONCURRENT_TRANSACTIONS
    if expected is not None and not _is_valid_producer(metadata, expected):
        return _E.PRODUCER_FENCED
    match metadata.state:
        case _S.PREPARE_ABORT | _S.PREPARE_COMMIT:
            return _E.CONCURRENT_TRANSACTIONS
        case _S.ONGOING:
            return metadata.prepare_fence_producer_epoch()
        case _S.COMPLETE_ABORT | _S.COMPLETE_COMMIT | _S.EMPTY:
            if _needs_new_id(metadata, expected):
                assert fresh_id is not None
                return metadata.prepare_producer_id_rotation(
                    fresh_id, timeout_ms, now_ms, record_last_epoch=expected is not None
                )
            expected_epoch = None if expected is None else expected.producer_epoch
            return metadata.prepare_increment_producer_epoch(timeout_ms, expected_epoch, now_ms)
        case state:
            raise IllegalTransitionError(f"transactional id {metadata.transactional_id} is in state {state}")


def _is_valid_producer(metadata: TransactionMetadata, expected: ProducerIdAndEpoch) -> bool:
    """Whether the producer's id is valid; its epoch is checked when the epoch is bumped.

    The previous id is valid if it had no epoch left: the response with the new id may have been lost. Any id is valid
    if the metadata is new. Kafka: TransactionCoordinator.isValidProducerId.
    """
    return (
        metadata.producer_epoch == NO_PRODUCER_EPOCH
        or expected.producer_id == metadata.producer_id
        or (expected.producer_id == metadata.last_producer_id and is_epoch_exhausted(expected.producer_epoch))
    )
