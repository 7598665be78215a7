"""The metadata of one transactional id, and its changes.

A change has two steps. `prepare_*` computes the new metadata (a `TransitMetadata`, which is written to the log) and
sets the pending state. `complete_transition_to` applies it when the record is committed. If it cannot be committed, the
pending state is cleared and the metadata stays as it was.

Invariants: at most one change is pending; the epoch grows by one, or starts at 0 with a new producer id; partitions are
added only while the transaction is Ongoing, and removed only while its markers are written; the epoch of a client is
below `LAST_EPOCH`, so that one epoch is left to fence it.

Kafka: TransactionMetadata, TxnTransitMetadata.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from odradek.coordinator.transaction.states import PREPARED, VALID_PREVIOUS, IllegalTransitionError, TransactionState
from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.layout import NO_PRODUCER_EPOCH, NO_PRODUCER_ID
from odradek.protocol.topic_partition import TopicPartition

LAST_EPOCH = 2**15 - 1
NO_START_TIMESTAMP = -1

_S = TransactionState


def is_epoch_exhausted(producer_epoch: int) -> bool:
    """Whether no later epoch may be given to a client."""
    return producer_epoch >= LAST_EPOCH - 1


class TransitMetadata(NamedTuple):
    """The metadata after a change. `last_*`: the previous id and epoch, which a producer that retries may still send.

    Kafka: TxnTransitMetadata.
    """

    producer_id: int
    last_producer_id: int
    producer_epoch: int
    last_producer_epoch: int
    timeout_ms: int
    state: TransactionState
    topic_partitions: frozenset[TopicPartition]
    start_timestamp_ms: int
    last_update_timestamp_ms: int


class TransactionMetadata:
    """One transactional id. Times are wall-clock milliseconds; the start is -1 before the first transaction."""

    __slots__ = (
        "has_failed_epoch_fence",
        "last_producer_epoch",
        "last_producer_id",
        "last_update_timestamp_ms",
        "pending_state",
        "producer_epoch",
        "producer_id",
        "start_timestamp_ms",
        "state",
        "timeout_ms",
        "topic_partitions",
        "transactional_id",
    )

    def __init__(
        self,
        transactional_id: str,
        *,
        producer_id: int,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        timeout_ms: int,
        state: TransactionState = TransactionState.EMPTY,
        topic_partitions: Iterable[TopicPartition] = (),
        start_timestamp_ms: int = NO_START_TIMESTAMP,
        last_update_timestamp_ms: int,
    ) -> None:
        self.transactional_id = transactional_id
        self.producer_id = producer_id
        self.last_producer_id = NO_PRODUCER_ID
        self.producer_epoch = producer_epoch
        self.last_producer_epoch = NO_PRODUCER_EPOCH
        self.timeout_ms = timeout_ms
        self.state = state
        self.topic_partitions = set(topic_partitions)
        self.start_timestamp_ms = start_timestamp_ms
        self.last_update_timestamp_ms = last_update_timestamp_ms
        self.pending_state: TransactionState | None = None
        self.has_failed_epoch_fence = False
        """The epoch was bumped in memory, but its append failed: no client has it, and the next fence uses it again."""

    @property
    def is_epoch_exhausted(self) -> bool:
        return is_epoch_exhausted(self.producer_epoch)

    # -- preparing -------------------------------------------------------------------------------------------

    def prepare_fence_producer_epoch(self) -> TransitMetadata:
        """Fence the producer with the current epoch; an abort follows."""
        if self.producer_epoch == LAST_EPOCH:
            raise IllegalTransitionError(f"no producer epoch is left to fence transactional id {self.transactional_id}")
        bumped = self.producer_epoch if self.has_failed_epoch_fence else self.producer_epoch + 1
        return self._prepare(_S.PREPARE_EPOCH_FENCE, self.last_update_timestamp_ms, producer_epoch=bumped)

    def prepare_increment_producer_epoch(
        self, timeout_ms: int, expected_epoch: int | None, now_ms: int
    ) -> TransitMetadata | ErrorCode:
        """Bump the epoch for InitProducerId. `expected_epoch`: the producer's current epoch, None for a new producer.

        Returns PRODUCER_FENCED for a producer that is not the latest. Returns UNKNOWN_SERVER_ERROR when no epoch is
        left, as Kafka's IllegalStateException does; only the latest producer gets a new producer id.
        """
        if self.is_epoch_exhausted:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        epoch, last_epoch = self.producer_epoch + 1, NO_PRODUCER_EPOCH
        if expected_epoch is not None:
            if expected_epoch == self.producer_epoch or self.producer_epoch == NO_PRODUCER_EPOCH:
                last_epoch = self.producer_epoch  # the producer bumps its epoch after an error
            elif expected_epoch == self.last_producer_epoch:
                # A retry of a request that succeeded. There was no new producer since: it would have set
                # `last_producer_epoch` to -1.
                epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
            else:
                return ErrorCode.PRODUCER_FENCED
        return self._prepare_empty(self.producer_id, epoch, last_epoch, timeout_ms, now_ms)

    def prepare_producer_id_rotation(
        self, producer_id: int, timeout_ms: int, now_ms: int, *, record_last_epoch: bool
    ) -> TransitMetadata:
        """The same with a new producer id, because the current one has no epoch left."""
        if self.state is _S.ONGOING or self.state in PREPARED:
            raise IllegalTransitionError("a producer id cannot change while a transaction is open")
        last_epoch = self.producer_epoch if record_last_epoch else NO_PRODUCER_EPOCH
        return self._prepare_empty(producer_id, 0, last_epoch, timeout_ms, now_ms)

    def _prepare_empty(
        self, producer_id: int, epoch: int, last_epoch: int, timeout_ms: int, now_ms: int
    ) -> TransitMetadata:
        return self._prepare(
            _S.EMPTY,
            now_ms,
            producer_id=producer_id,
            producer_epoch=epoch,
            last_producer_epoch=last_epoch,
            timeout_ms=timeout_ms,
            topic_partitions=frozenset(),
            start_timestamp_ms=NO_START_TIMESTAMP,
        )

    def prepare_add_partitions(self, added: Iterable[TopicPartition], now_ms: int) -> TransitMetadata:
        """Add partitions to the transaction; the first ones begin it."""
        return self._prepare(
            _S.ONGOING,
            now_ms,
            last_producer_epoch=self.last_producer_epoch,
            topic_partitions=frozenset(self.topic_partitions.union(added)),
            start_timestamp_ms=self.start_timestamp_ms if self.state is _S.ONGOING else now_ms,
        )

    def prepare_abort_or_commit(self, state: TransactionState, now_ms: int) -> TransitMetadata:
        """Enter PrepareCommit or PrepareAbort."""
        return self._prepare(state, now_ms, last_producer_epoch=self.last_producer_epoch)

    def prepare_complete(self, now_ms: int) -> TransitMetadata:
        """Enter CompleteCommit or CompleteAbort, which is pending while the markers are written."""
        state = _S.COMPLETE_COMMIT if self.state is _S.PREPARE_COMMIT else _S.COMPLETE_ABORT
        self.has_failed_epoch_fence = False  # the epoch is in the log now
        return self._prepare(state, now_ms, last_producer_epoch=self.last_producer_epoch, topic_partitions=frozenset())

    def prepare_dead(self) -> TransitMetadata:
        """The id has expired."""
        return self._prepare(
            _S.DEAD,
            self.last_update_timestamp_ms,
            last_producer_epoch=self.last_producer_epoch,
            topic_partitions=frozenset(),
        )

    def _prepare(
        self,
        state: TransactionState,
        now_ms: int,
        *,
        producer_id: int | None = None,
        producer_epoch: int | None = None,
        last_producer_epoch: int = NO_PRODUCER_EPOCH,
        timeout_ms: int | None = None,
        topic_partitions: frozenset[TopicPartition] | None = None,
        start_timestamp_ms: int | None = None,
    ) -> TransitMetadata:
        """Set the pending state. Arguments that are None keep the current value. Kafka: prepareTransitionTo."""
        if self.pending_state is not None:
            raise IllegalTransitionError(
                f"transactional id {self.transactional_id} cannot go to {state} while {self.pending_state} is pending"
            )
        if self.state not in VALID_PREVIOUS[state]:
            raise IllegalTransitionError(
                f"transactional id {self.transactional_id} cannot go from {self.state} to {state}"
            )
        transit = TransitMetadata(
            producer_id=self.producer_id if producer_id is None else producer_id,
            last_producer_id=self.producer_id,
            producer_epoch=self.producer_epoch if producer_epoch is None else producer_epoch,
            last_producer_epoch=last_producer_epoch,
            timeout_ms=self.timeout_ms if timeout_ms is None else timeout_ms,
            state=state,
            topic_partitions=frozenset(self.topic_partitions) if topic_partitions is None else topic_partitions,
            start_timestamp_ms=self.start_timestamp_ms if start_timestamp_ms is None else start_timestamp_ms,
            last_update_timestamp_ms=now_ms,
        )
        if transit.producer_id < 0 or (transit.producer_epoch < 0 and state is not _S.DEAD):
            raise IllegalTransitionError(
                f"transactional id {self.transactional_id} has no producer id and epoch: {transit}"
            )
        self.pending_state = state
        return transit

    # -- completing ------------------------------------------------------------------------------------------

    def begin_fenced_abort(self, producer_epoch: int) -> None:
        """Replace the pending fence by the abort that writes its epoch."""
        self.pending_state = None
        self.producer_epoch = producer_epoch
        self.last_producer_epoch = NO_PRODUCER_EPOCH

    def complete_transition_to(self, transit: TransitMetadata) -> None:
        """Apply a prepared change whose record is committed."""
        if self.pending_state is not transit.state or not self._is_valid_transition(transit):
            raise IllegalTransitionError(
                f"transactional id {self.transactional_id} in {self.state} (pending: {self.pending_state}) "
                f"cannot become {transit}"
            )
        match transit.state:
            case _S.EMPTY:
                self.timeout_ms = transit.timeout_ms
                self.producer_epoch = transit.producer_epoch
                self.last_producer_epoch = transit.last_producer_epoch
                self.producer_id = transit.producer_id
                self.last_producer_id = transit.last_producer_id
            case _S.ONGOING:
                self.start_timestamp_ms = transit.start_timestamp_ms
                self.topic_partitions.update(transit.topic_partitions)
            case _S.COMPLETE_ABORT | _S.COMPLETE_COMMIT:
                self.start_timestamp_ms = transit.start_timestamp_ms
                self.topic_partitions.clear()
        self.last_update_timestamp_ms = transit.last_update_timestamp_ms
        self.pending_state = None
        self.state = transit.state

    def _is_valid_transition(self, transit: TransitMetadata) -> bool:
        """Whether the metadata is still the same as when the change was prepared."""
        same_producer = (transit.producer_id, transit.producer_epoch) == (self.producer_id, self.producer_epoch)
        same_timeout = transit.timeout_ms == self.timeout_ms
        match transit.state:
            case _S.EMPTY:
                return (
                    (transit.producer_epoch == self.producer_epoch or self._is_valid_epoch_bump(transit))
                    and not transit.topic_partitions
                    and transit.start_timestamp_ms == NO_START_TIMESTAMP
                )
            case _S.ONGOING:
                return same_producer and same_timeout and self.topic_partitions <= transit.topic_partitions
            case _S.PREPARE_ABORT | _S.PREPARE_COMMIT:
                return (
                    same_producer
                    and same_timeout
                    and self.topic_partitions == transit.topic_partitions
                    and self.start_timestamp_ms == transit.start_timestamp_ms
                )
            case _S.COMPLETE_ABORT | _S.COMPLETE_COMMIT:
                return same_producer and same_timeout and transit.start_timestamp_ms != NO_START_TIMESTAMP
            case _:  # Dead and PrepareEpochFence are never completed
                return False

    def _is_valid_epoch_bump(self, transit: TransitMetadata) -> bool:
        """Kafka: TransactionMetadata.validProducerEpochBump."""
        is_new_producer = transit.producer_epoch == 0 and transit.producer_id != self.producer_id
        return is_new_producer or transit.producer_epoch == self.producer_epoch + 1

    def remove_partition(self, topic_partition: TopicPartition) -> None:
        """The partition has its marker, or is deleted and needs none."""
        if self.state not in PREPARED:
            raise IllegalTransitionError(
                f"transactional id {self.transactional_id} cannot complete a marker in state {self.state}"
            )
        self.topic_partitions.discard(topic_partition)
