"""What a coordinator knows of one transactional id, and the changes it may go through.

A change has two halves. `prepare_*` works out what the metadata is going to be (a `TransitMetadata`, which is what the
log gets) and notes the state it leads to as pending; `complete_transition_to` takes it over once the record is
committed. If it cannot be committed the pending state is cleared and nothing has happened.

Invariants: at most one change is pending; the epoch grows by one or starts at 0 with a new producer id; partitions are
only added while the transaction is Ongoing, only taken away while its markers are written; a producer epoch that a
client may use is below `LAST_EPOCH`, so that there is always one left to fence it with.

Kafka: TransactionMetadata and TxnTransitMetadata.
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
    """Whether no client may be given a later epoch."""
    return producer_epoch >= LAST_EPOCH - 1


class TransitMetadata(NamedTuple):
    """The metadata as a change will leave it. `last_*` are what a producer that retries may still present."""

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
    """One transactional id. Times are wall-clock milliseconds; the start is -1 while there has been no transaction."""

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
        """The epoch was raised, but perhaps not in the log: it has been told nobody, and is used for the next try."""

    @property
    def is_epoch_exhausted(self) -> bool:
        return is_epoch_exhausted(self.producer_epoch)

    # -- preparing -------------------------------------------------------------------------------------------

    def prepare_fence_producer_epoch(self) -> TransitMetadata:
        """Shut out whoever uses the current epoch; an abort follows."""
        if self.producer_epoch == LAST_EPOCH:
            raise IllegalTransitionError(f"no epoch is left to fence {self.transactional_id} with")
        bumped = self.producer_epoch if self.has_failed_epoch_fence else self.producer_epoch + 1
        return self._prepare(_S.PREPARE_EPOCH_FENCE, self.last_update_timestamp_ms, producer_epoch=bumped)

    def prepare_increment_producer_epoch(
        self, timeout_ms: int, expected_epoch: int | None, now_ms: int
    ) -> TransitMetadata | ErrorCode:
        """A producer with this id begins. `expected_epoch`: the one it believes it has, None if it is a new one.

        Answers PRODUCER_FENCED to a producer that is not the latest. When no epoch is left, only the latest gets a new
        producer id; others are answered UNKNOWN_SERVER_ERROR, which is what Kafka's exception becomes.
        """
        if self.is_epoch_exhausted:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        epoch, last_epoch = self.producer_epoch + 1, NO_PRODUCER_EPOCH
        if expected_epoch is not None:
            if expected_epoch == self.producer_epoch or self.producer_epoch == NO_PRODUCER_EPOCH:
                last_epoch = self.producer_epoch  # it goes on after an error
            elif expected_epoch == self.last_producer_epoch:
                # It repeats a request that succeeded. Nobody else has come since, or the last epoch were -1.
                epoch, last_epoch = self.producer_epoch, self.last_producer_epoch
            else:
                return ErrorCode.PRODUCER_FENCED
        return self._prepare_empty(self.producer_id, epoch, last_epoch, timeout_ms, now_ms)

    def prepare_producer_id_rotation(
        self, producer_id: int, timeout_ms: int, now_ms: int, *, record_last_epoch: bool
    ) -> TransitMetadata:
        """As before, with a new producer id because the epochs of the current one are used up."""
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
        """Partitions join the transaction; the first of them begin it."""
        return self._prepare(
            _S.ONGOING,
            now_ms,
            last_producer_epoch=self.last_producer_epoch,
            topic_partitions=frozenset(self.topic_partitions.union(added)),
            start_timestamp_ms=self.start_timestamp_ms if self.state is _S.ONGOING else now_ms,
        )

    def prepare_abort_or_commit(self, state: TransactionState, now_ms: int) -> TransitMetadata:
        """The transaction is decided."""
        return self._prepare(state, now_ms, last_producer_epoch=self.last_producer_epoch)

    def prepare_complete(self, now_ms: int) -> TransitMetadata:
        """The markers are going to be written."""
        state = _S.COMPLETE_COMMIT if self.state is _S.PREPARE_COMMIT else _S.COMPLETE_ABORT
        self.has_failed_epoch_fence = False  # the epoch has reached the log by now
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
        """What is None stays as it is."""
        if self.pending_state is not None:
            raise IllegalTransitionError(f"{state} while {self.pending_state} is pending, of {self.transactional_id}")
        if self.state not in VALID_PREVIOUS[state]:
            raise IllegalTransitionError(f"{state} does not follow from {self.state}, of {self.transactional_id}")
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
            raise IllegalTransitionError(f"{self.transactional_id} without a producer id and epoch: {transit}")
        self.pending_state = state
        return transit

    # -- completing ------------------------------------------------------------------------------------------

    def begin_fenced_abort(self, producer_epoch: int) -> None:
        """The pending fence gives way to the abort that writes its epoch."""
        self.pending_state = None
        self.producer_epoch = producer_epoch
        self.last_producer_epoch = NO_PRODUCER_EPOCH

    def complete_transition_to(self, transit: TransitMetadata) -> None:
        """The record of a prepared change is committed."""
        if self.pending_state is not transit.state or not self._fits(transit):
            raise IllegalTransitionError(
                f"{self.transactional_id} in {self.state} (pending: {self.pending_state}) cannot become {transit}"
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

    def _fits(self, transit: TransitMetadata) -> bool:
        """Whether the metadata is still what the change was prepared from."""
        same_producer = (transit.producer_id, transit.producer_epoch) == (self.producer_id, self.producer_epoch)
        same_timeout = transit.timeout_ms == self.timeout_ms
        match transit.state:
            case _S.EMPTY:
                return (
                    (transit.producer_epoch == self.producer_epoch or self._is_bump(transit))
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

    def _is_bump(self, transit: TransitMetadata) -> bool:
        is_new_producer = transit.producer_epoch == 0 and transit.producer_id != self.producer_id
        return is_new_producer or transit.producer_epoch == self.producer_epoch + 1

    def remove_partition(self, topic_partition: TopicPartition) -> None:
        """The partition has its marker, or needs none any more."""
        if self.state not in PREPARED:
            raise IllegalTransitionError(f"marker of {self.transactional_id} in {self.state}")
        self.topic_partitions.discard(topic_partition)
