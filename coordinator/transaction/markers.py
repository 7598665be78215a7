"""Sends the markers of transactions in PrepareCommit or PrepareAbort, and completes the transactions.

The leader of each partition writes a marker on a WriteTxnMarkers request. Markers are queued per broker; those queued
while a request to the broker is in flight go with the next one. When the last partition of a transaction has its
marker, CompleteCommit or CompleteAbort is appended to `__transaction_state`.

    error of a partition                                    effect
    ------------------------------------------------------  ---------------------------------------------
    NONE                                                    the partition has its marker
    UNSUPPORTED_FOR_MESSAGE_FORMAT, UNSUPPORTED_VERSION     the partition cannot hold transactional records: as NONE
    UNKNOWN_TOPIC_OR_PARTITION, NOT_LEADER_OR_FOLLOWER,     sent again, to the current leader
    NOT_ENOUGH_REPLICAS (also after append),
    REQUEST_TIMED_OUT, KAFKA_STORAGE_ERROR, no response
    INVALID_PRODUCER_EPOCH, TRANSACTION_COORDINATOR_FENCED  dropped: a later epoch completes the transaction
    any other error                                         a bug; pending until the coordinator's partition is reloaded

A partition that is not in the metadata cache is deleted and needs no marker, if the metadata tree says so, too: a new
controller names some partitions later than others. Any other one, and one without a leader, is retried later.

What is to be tried again waits in two queues, which one timer empties: a round appends each end of a transaction once
more, routes each entry, and sends one request to each leader. Between its steps other requests are served.

Invariant: each transactional id has at most one pending completion; entries of an earlier one are dropped when they are
processed.

Kafka: TransactionMarkerChannelManager, TransactionMarkerRequestCompletionHandler.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

from odradek.coordinator.batched_requests import BatchedRequests, call_all
from odradek.coordinator.transaction.config import (
    MARKER_RETRY_BACKOFF_MAX_MS,
    MARKER_RETRY_BACKOFF_MS,
    MARKER_RETRY_PAUSE,
)
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
from odradek.timer.clock import Clock
from odradek.timer.sliced_work import SlicedWork, Steps
from odradek.timer.system_timer import SystemTimer

_log = logging.getLogger(__name__)

_E = ErrorCode

NO_NODE = -1
"""The leader of a partition while no live broker leads it. Kafka: Node.noNode."""

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
TRIED_AGAIN = frozenset({_E.COORDINATOR_NOT_AVAILABLE, _E.NOT_COORDINATOR})
"""Errors of the append of a transaction's end, while this broker coordinates it."""


class MarkerChannel(Protocol):
    """Finds the leaders of partitions and sends requests to them."""

    def leader_of(self, topic_partition: TopicPartition) -> int | None:
        """The leader's broker id; -1 while no live broker leads the partition; None if the metadata do not name it."""
        ...

    def find_deleted(
        self, topic_partitions: frozenset[TopicPartition], respond: Callable[[frozenset[TopicPartition]], None]
    ) -> None:
        """Ask the metadata tree; `respond` gets those partitions that are deleted, none if it cannot be read."""
        ...

    def send_markers(
        self,
        broker_id: int,
        request: WriteTxnMarkersRequest,
        respond: Callable[[WriteTxnMarkersResponse | None], None],
    ) -> None:
        """Send the request; `respond` gets the response, or None if none will come."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class PendingCompletion:
    """A transaction whose markers are being written, and the change that completes it."""

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
        topics: dict[str, list[int]] = {}
        for name, partition in sorted(self.topic_partitions):
            topics.setdefault(name, []).append(partition)
        transit = self.completion.transit
        return WritableTxnMarker(
            producer_id=transit.producer_id,
            producer_epoch=transit.producer_epoch,
            transaction_result=transit.state is TransactionState.COMPLETE_COMMIT,
            topics=[WritableTxnMarkerTopic(name=name, partition_indexes=found) for name, found in topics.items()],
            coordinator_epoch=self.completion.coordinator_epoch,
        )


class _Retry(NamedTuple):
    entry: _Entry
    is_unknown: bool
    """Whether it waits because no live broker leads its partitions."""


class MarkerSender:
    """Sends the markers and appends the completions."""

    def __init__(
        self, states: TransactionStateManager, channel: MarkerChannel, timer: SystemTimer, clock: Clock
    ) -> None:
        self._states = states
        self._channel = channel
        self._timer = timer
        self._clock = clock
        self._pending: dict[str, PendingCompletion] = {}
        self._queues: dict[int, list[_Entry]] = {}
        self._to_append: deque[PendingCompletion] = deque()
        self._to_route: deque[_Retry] = deque()
        self._retries = SlicedWork(timer, clock)
        self._is_retry_due = False
        """A round of retries is scheduled or under way."""
        self.unknown_destinations = 0
        """Markers that wait because the leader of their partitions is not known. For metrics."""
        self._requests: BatchedRequests[int, list[_Entry], WriteTxnMarkersResponse] = BatchedRequests(self)

    @property
    def pending_count(self) -> int:
        """Transactions in PrepareCommit or PrepareAbort, for metrics and tests."""
        return len(self._pending)

    @property
    def append_retries(self) -> int:
        """Completed transactions whose append to the log is tried again later. For metrics."""
        return len(self._to_append)

    def add(self, coordinator_epoch: int, metadata: TransactionMetadata, transit: TransitMetadata) -> None:
        """Write the markers of a transaction, then append `transit`, which completes it.

        Kafka: TransactionMarkerChannelManager.addTxnMarkersToSend.
        """
        completion = PendingCompletion(metadata.transactional_id, coordinator_epoch, metadata, transit)
        self._pending[metadata.transactional_id] = completion
        self._route(_Entry(completion, frozenset(metadata.topic_partitions)))
        self._complete_if_marked(completion)

    def forget_partition(self, partition: int) -> None:
        """Drop the markers of a partition of `__transaction_state`: another broker coordinates it now.

        Kafka: TransactionMarkerChannelManager.removeMarkersForTxnTopicPartition.
        """
        self._pending = {
            transactional_id: completion
            for transactional_id, completion in self._pending.items()
            if self._states.partition_for(transactional_id) != partition
        }

    # -- sending ---------------------------------------------------------------------------------------------

    def _route(self, entry: _Entry) -> None:
        for leader in self._queue(entry):
            self._requests.send(leader)

    def _queue(self, entry: _Entry) -> list[int]:
        """Queue the entry for the leaders of its partitions; returns the leaders.

        Kafka: TransactionMarkerChannelManager.addTxnMarkersToBrokerQueue.
        """
        leaders = []
        by_leader: dict[int | None, list[TopicPartition]] = {}
        for topic_partition in sorted(entry.topic_partitions):
            by_leader.setdefault(self._channel.leader_of(topic_partition), []).append(topic_partition)
        for leader, topic_partitions in by_leader.items():
            part = _Entry(entry.completion, frozenset(topic_partitions))
            if leader is None:
                self._channel.find_deleted(part.topic_partitions, partial(self._drop_deleted, part))
            elif leader == NO_NODE:
                self._route_later(part, is_unknown=True)
            else:
                self._queues.setdefault(leader, []).append(part)
                leaders.append(leader)
        return leaders

    def _route_later(self, entry: _Entry, *, is_unknown: bool = False) -> None:
        self.unknown_destinations += is_unknown
        self._to_route.append(_Retry(entry, is_unknown))
        self._schedule_retries()

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
        to_retry = []
        for topic_partition in entry.topic_partitions:
            error = errors.get(topic_partition, _E.UNKNOWN_SERVER_ERROR)
            if error in MARKED:
                completion.metadata.remove_partition(topic_partition)
            elif error in RETRIABLE:
                to_retry.append(topic_partition)
            elif error in FENCED:
                _log.info(
                    "Dropping the markers of transactional id %s: its producer or coordinator is fenced (%s)",
                    completion.transactional_id,
                    error.name,
                )
                self._pending.pop(completion.transactional_id, None)
            else:
                _log.error(
                    "Unexpected error %s for the marker of transactional id %s in %s; its transaction stays pending",
                    error.name,
                    completion.transactional_id,
                    topic_partition,
                )
        if to_retry:
            self._route_later(_Entry(completion, frozenset(to_retry)))
        else:
            self._complete_if_marked(completion)

    def _drop_deleted(self, entry: _Entry, deleted: frozenset[TopicPartition]) -> None:
        """Drop the markers of deleted partitions; those of the others wait until the metadata name them."""
        completion = entry.completion
        if not self._is_current(completion):
            return
        if not self._is_coordinated(completion):
            del self._pending[completion.transactional_id]
            return
        for topic_partition in sorted(deleted):
            _log.info(
                "Dropping the marker of transactional id %s in %s, which is deleted",
                completion.transactional_id,
                topic_partition,
            )
            completion.metadata.remove_partition(topic_partition)
        if left := entry.topic_partitions - deleted:
            self._route_later(_Entry(completion, left), is_unknown=True)
        self._complete_if_marked(completion)

    def _is_current(self, completion: PendingCompletion) -> bool:
        return self._pending.get(completion.transactional_id) is completion

    def _is_coordinated(self, completion: PendingCompletion) -> bool:
        """Whether this broker still coordinates the id, in the coordinator epoch of the completion."""
        owned = self._states.find(completion.transactional_id)
        return isinstance(owned, Owned) and owned.coordinator_epoch == completion.coordinator_epoch

    # -- completing ------------------------------------------------------------------------------------------

    def _complete_if_marked(self, completion: PendingCompletion) -> None:
        if self._is_current(completion) and not completion.metadata.topic_partitions:
            del self._pending[completion.transactional_id]
            if self._is_coordinated(completion):
                self._append_completion(completion)

    def _append_completion(self, completion: PendingCompletion) -> None:
        """Kafka: TransactionMarkerChannelManager.tryAppendToLog, which gives up after an error of the disk: there the
        directory goes offline, and another coordinator completes the transaction. Here a full disk changes no leader.
        """

        def appended(error: ErrorCode) -> None:
            if error in TRIED_AGAIN and self._is_coordinated(completion):
                self._to_append.append(completion)
                self._schedule_retries()
            elif error not in (_E.NONE, _E.NOT_COORDINATOR, _E.COORDINATOR_LOAD_IN_PROGRESS):
                _log.error(
                    "Failed to append %s of transactional id %s: %s. Its transaction stays pending",
                    completion.transit.state,
                    completion.transactional_id,
                    error.name,
                )

        self._states.append(
            completion.transactional_id,
            completion.coordinator_epoch,
            completion.transit,
            appended,
            keep_pending_on=TRIED_AGAIN,
        )

    # -- trying again ----------------------------------------------------------------------------------------

    def _schedule_retries(self, delay_ms: int = MARKER_RETRY_BACKOFF_MS) -> None:
        if not self._is_retry_due:
            self._is_retry_due = True
            self._timer.schedule(delay_ms, lambda: self._retries.submit(self._retry_steps()))

    def _retry_steps(self) -> Steps:
        """One round; what fails once more waits for the next.

        Kafka: TransactionMarkerChannelManager.generateRequests.
        """
        begun_ms = self._clock.monotonic_ms()
        leaders: dict[int, None] = {}
        try:
            for _ in range(len(self._to_append)):
                self._append_completion(self._to_append.popleft())
                yield None
            for _ in range(len(self._to_route)):
                entry, is_unknown = self._to_route.popleft()
                self.unknown_destinations -= is_unknown
                if self._is_current(entry.completion):
                    leaders.update(dict.fromkeys(self._queue(entry)))
                yield None
            call_all(partial(self._requests.send, leader) for leader in leaders)
        finally:
            self._is_retry_due = False
            if self._to_append or self._to_route:
                pause_ms = MARKER_RETRY_PAUSE * (self._clock.monotonic_ms() - begun_ms)
                self._schedule_retries(min(max(MARKER_RETRY_BACKOFF_MS, pause_ms), MARKER_RETRY_BACKOFF_MAX_MS))


def _errors_by_producer(response: WriteTxnMarkersResponse) -> dict[int, dict[TopicPartition, ErrorCode]]:
    errors: dict[int, dict[TopicPartition, ErrorCode]] = {}
    for marker in response.markers:
        found = errors.setdefault(marker.producer_id, {})
        for topic in marker.topics:
            for partition in topic.partitions:
                found[TopicPartition(topic.name, partition.partition_index)] = ErrorCode.for_code(partition.error_code)
    return errors
