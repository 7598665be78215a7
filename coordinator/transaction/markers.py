"""Telling the partitions of decided transactions how they ended.

Each partition gets a marker from its leader, by WriteTxnMarkers. Markers wait in a queue per broker; what has come
together while a request to it is under way goes with the next one. When the last partition of a transaction has its
marker, the transaction is complete, and that is appended to `__transaction_state`.

    answer for a partition                                  what is done
    ------------------------------------------------------  ---------------------------------------------
    NONE                                                    it has its marker
    UNSUPPORTED_FOR_MESSAGE_FORMAT, UNSUPPORTED_VERSION     nothing of a transaction can be in it: as before
    UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER,     sent again, to whoever leads it then
    NOT_ENOUGH_REPLICAS (also after append),
    REQUEST_TIMED_OUT, KAFKA_STORAGE_ERROR, no answer
    INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED  given up: a later epoch takes care of it
    anything else                                           a bug; left as it is until the partition is loaded again

A partition of which nobody has heard is deleted and needs no marker; one without a leader waits.

Invariant: of each transactional id at most one completion is pending; entries of an earlier one are dropped where they
are met.

Kafka: TransactionMarkerChannelManager and TransactionMarkerRequestCompletionHandler.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from odradek.coordinator.batched_requests import BatchedRequests, call_all
from odradek.coordinator.transaction.config import MARKER_RETRY_BACKOFF_MS
from odradek.coordinator.transaction.states import TransactionState
from odradek.coordinator.transaction.transaction_metadata import TransactionMetadata, TransitMetadata
from odradek.coordinator.transaction.transaction_state_manager import Owned, TransactionStateManager
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.system_timer import SystemTimer

_log = logging.getLogger(__name__)

_E = ErrorCode

NO_NODE = -1
"""Where markers go while nobody who lives leads the partition (Kafka: Node.noNode)."""

MARKED = frozenset({_E.NONE, _E.UNSUPPORTED_FOR_MESSAGE_FORMAT, _E.UNSUPPORTED_VERSION})
RETRIABLE = frozenset(
    {
        _E.UNKNOWN_TOPIC_OR_PARTITION,
        _E.NOT_LEADER_OR_FOLLOWER,
        _E.NOT_ENOUGH_REPLICAS,
        _E.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        _E.REQUEST_TIMED_OUT,
        _E.KAFKA_STORAGE_ERROR,
    }
)
FENCED = frozenset({_E.INVALID_PRODUCER_EPOCH, _E.TRANSACTION_COORDINATOR_FENCED})


class MarkerChannel(Protocol):
    """The way to the leaders of partitions."""

    def leader_of(self, topic_partition: TopicPartition) -> int | None:
        """The leader's broker id; -1 while it has none that lives; None if there is no such partition."""
        ...

    def send_markers(
        self,
        broker_id: int,
        request: WriteTxnMarkersRequest,
        respond: Callable[[WriteTxnMarkersResponse | None], None],
    ) -> None:
        """Send the request; the response, or None if none will come."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class PendingCompletion:
    """A decided transaction whose markers are being written, and the change that completes it."""

    transactional_id: str
    coordinator_epoch: int
    metadata: TransactionMetadata
    transit: TransitMetadata


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    """The marker of one transaction for some partitions."""

    completion: PendingCompletion
    topic_partitions: frozenset[TopicPartition]

    def to_marker(self) -> WritableTxnMarker:
        topics: dict[str, WritableTxnMarkerTopic] = {}
        for name, partition in sorted(self.topic_partitions):
            topics.setdefault(name, WritableTxnMarkerTopic(name=name)).partition_indexes.append(partition)
        transit = self.completion.transit
        return WritableTxnMarker(
            producer_id=transit.producer_id,
            producer_epoch=transit.producer_epoch,
            transaction_result=transit.state is TransactionState.COMPLETE_COMMIT,
            topics=list(topics.values()),
            coordinator_epoch=self.completion.coordinator_epoch,
        )


class MarkerSender:
    """Brings decided transactions to their end."""

    def __init__(self, states: TransactionStateManager, channel: MarkerChannel, timer: SystemTimer) -> None:
        self._states = states
        self._channel = channel
        self._timer = timer
        self._pending: dict[str, PendingCompletion] = {}
        self._queues: dict[int, list[_Entry]] = {}
        self._requests: BatchedRequests[int, list[_Entry], WriteTxnMarkersResponse] = BatchedRequests(self)

    @property
    def pending_count(self) -> int:
        """Transactions that are decided and not complete, for metrics and tests."""
        return len(self._pending)

    def add(self, coordinator_epoch: int, metadata: TransactionMetadata, transit: TransitMetadata) -> None:
        """Write the markers of a transaction, then append `transit`, which completes it."""
        completion = PendingCompletion(metadata.transactional_id, coordinator_epoch, metadata, transit)
        self._pending[metadata.transactional_id] = completion
        self._route(_Entry(completion, frozenset(metadata.topic_partitions)))
        self._complete_if_marked(completion)

    def forget_partition(self, partition: int) -> None:
        """The partition of `__transaction_state` moves: its transactions are another coordinator's now."""
        self._pending = {
            transactional_id: completion
            for transactional_id, completion in self._pending.items()
            if self._states.partition_for(transactional_id) != partition
        }

    # -- sending ---------------------------------------------------------------------------------------------

    def _route(self, entry: _Entry) -> None:
        by_leader: dict[int | None, list[TopicPartition]] = {}
        for topic_partition in sorted(entry.topic_partitions):
            by_leader.setdefault(self._channel.leader_of(topic_partition), []).append(topic_partition)
        for leader, topic_partitions in by_leader.items():
            part = _Entry(entry.completion, frozenset(topic_partitions))
            if leader is None:
                self._drop_deleted(part)
            elif leader == NO_NODE:
                self._route_later(part)
            else:
                self._queues.setdefault(leader, []).append(part)
                self._requests.send(leader)

    def _route_later(self, entry: _Entry) -> None:
        def again() -> None:
            if self._is_current(entry.completion):
                self._route(entry)

        self._timer.schedule(MARKER_RETRY_BACKOFF_MS, again)

    # Implements `BatchOwner`.

    def take_batch(self, broker_id: int, /) -> list[_Entry] | None:
        return [entry for entry in self._queues.pop(broker_id, ()) if self._is_current(entry.completion)] or None

    def send_batch(
        self, broker_id: int, entries: list[_Entry], respond: Callable[[WriteTxnMarkersResponse | None], None], /
    ) -> None:
        request = WriteTxnMarkersRequest(markers=[entry.to_marker() for entry in entries])
        self._channel.send_markers(broker_id, request, respond)

    def batch_answered(self, entries: list[_Entry], response: WriteTxnMarkersResponse | None, /) -> bool:
        errors = None if response is None else _errors_by_producer(response)
        call_all(partial(self._entry_answered, entry, errors) for entry in entries)
        return True

    def _entry_answered(self, entry: _Entry, errors: Mapping[int, Mapping[TopicPartition, ErrorCode]] | None) -> None:
        if not self._is_current(entry.completion):
            return
        if not self._is_coordinated(entry.completion):
            del self._pending[entry.completion.transactional_id]
        elif errors is None:
            self._route_later(entry)
        else:
            self._apply(entry, errors.get(entry.completion.transit.producer_id, {}))

    def _apply(self, entry: _Entry, errors: Mapping[TopicPartition, ErrorCode]) -> None:
        completion = entry.completion
        again = []
        for topic_partition in entry.topic_partitions:
            error = errors.get(topic_partition, _E.UNKNOWN_SERVER_ERROR)
            if error in MARKED:
                completion.metadata.remove_partition(topic_partition)
            elif error in RETRIABLE:
                again.append(topic_partition)
            elif error in FENCED:
                _log.info("Markers of %s are given up: %s", completion.transactional_id, error.name)
                self._pending.pop(completion.transactional_id, None)
            else:
                _log.error(
                    "Unexpected error %s for the marker of %s in %s",
                    error.name,
                    completion.transactional_id,
                    topic_partition,
                )
        if again:
            self._route_later(_Entry(completion, frozenset(again)))
        else:
            self._complete_if_marked(completion)

    def _drop_deleted(self, entry: _Entry) -> None:
        completion = entry.completion
        if not self._is_current(completion):
            return
        if not self._is_coordinated(completion):
            del self._pending[completion.transactional_id]
            return
        for topic_partition in entry.topic_partitions:
            completion.metadata.remove_partition(topic_partition)
        self._complete_if_marked(completion)

    def _is_current(self, completion: PendingCompletion) -> bool:
        return self._pending.get(completion.transactional_id) is completion

    def _is_coordinated(self, completion: PendingCompletion) -> bool:
        """Whether this broker still coordinates the id, in the epoch in which it was decided."""
        owned = self._states.find(completion.transactional_id)
        return isinstance(owned, Owned) and owned.coordinator_epoch == completion.coordinator_epoch

    # -- completing ------------------------------------------------------------------------------------------

    def _complete_if_marked(self, completion: PendingCompletion) -> None:
        if self._is_current(completion) and not completion.metadata.topic_partitions:
            del self._pending[completion.transactional_id]
            if self._is_coordinated(completion):
                self._append_completion(completion)

    def _append_completion(self, completion: PendingCompletion) -> None:
        def appended(error: ErrorCode) -> None:
            if error == _E.COORDINATOR_NOT_AVAILABLE:
                self._timer.schedule(MARKER_RETRY_BACKOFF_MS, lambda: self._append_completion(completion))
            elif error not in (_E.NONE, _E.NOT_COORDINATOR, _E.COORDINATOR_LOAD_IN_PROGRESS):
                _log.error("The end of a transaction of %s is lost: %s", completion.transactional_id, error.name)

        self._states.append(
            completion.transactional_id,
            completion.coordinator_epoch,
            completion.transit,
            appended,
            keep_pending_on=frozenset({_E.COORDINATOR_NOT_AVAILABLE}),
        )


def _errors_by_producer(response: WriteTxnMarkersResponse) -> dict[int, dict[TopicPartition, ErrorCode]]:
    errors: dict[int, dict[TopicPartition, ErrorCode]] = {}
    for marker in response.markers:
        found = errors.setdefault(marker.producer_id, {})
        for topic in marker.topics:
            for partition in topic.partitions:
                found[TopicPartition(topic.name, partition.partition_index)] = ErrorCode.for_code(partition.error_code)
    return errors
