"""The follower's side of incremental fetch sessions (KIP-227), without I/O: builds requests and checks answers.

    next request                     partitions in it                       after
    session 0, epoch 0               all                                    the start, or an answer without a session
    session n, epoch 0               all; session n is closed               a failure, or an invalid answer
    session n, epoch 1, 2, ...       new, changed and forgotten ones        an answer of the session

A partition of a topic that was deleted and created again is forgotten under the old id and added under the new one.
Versions from 13 on name topics by id and need an id for every topic. The leader refuses a session that changes between
ids and names, and the next request begins a new session.

Within a session only the partitions that may have changed are compared: a follower of thousands of partitions fetches
several times a second, and usually one of them has changed. The leader's side is broker/fetch/fetch_session.py.

Kafka: FetchSessionHandler, FetchMetadata.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.fetch.fetch_context import INITIAL_EPOCH, MAX_EPOCH, TOPIC_ID_VERSION
from odradek.broker.fetch.fetch_session_cache import INVALID_SESSION_ID
from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.new_tuple import new_tuple
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.protocol.messages.fetch import FetchResponse, PartitionData

log = logging.getLogger(__name__)

START: Final = (INVALID_SESSION_ID, INITIAL_EPOCH)


class PartitionRequest(NamedTuple):
    """The fields of one partition in a fetch. Epochs are -1 and the topic id is zero where there is none."""

    topic_id: bytes
    fetch_offset: int
    log_start_offset: int
    current_leader_epoch: int
    last_fetched_epoch: int


class SessionRequest(NamedTuple):
    """The content of the next fetch. `forgotten` pairs partitions with the topic ids of the session. `replaced` does
    so for partitions that are forgotten only if the request names topics by id.
    """

    session_id: int
    session_epoch: int
    partitions: Mapping[TopicPartition, PartitionRequest]
    forgotten: list[tuple[TopicPartition, bytes]]
    replaced: list[tuple[TopicPartition, bytes]]
    can_use_topic_ids: bool


class FetchSessionHandler:
    """The session with one leader. `partitions` are all partitions of the session, with their last requests."""

    __slots__ = ("_metadata", "_next_place", "_node", "_places", "_topics", "_without_id", "partitions")

    def __init__(self, node: int) -> None:
        self._node = node
        self._metadata = START
        self.partitions: dict[TopicPartition, PartitionRequest] = {}
        self._places: dict[TopicPartition, int] = {}
        """The order in which the partitions came into the session."""
        self._next_place = 0
        self._topics: dict[bytes, tuple[str, int]] = {}
        """By topic id: the name, and the number of partitions of the session with that id."""
        self._without_id = 0

    @property
    def is_full(self) -> bool:
        """Whether the next request names all partitions."""
        return self._metadata[1] == INITIAL_EPOCH

    def build_full(self, wanted: Mapping[TopicPartition, PartitionRequest]) -> SessionRequest:
        """The next full request, for the partitions `wanted`."""
        self.partitions, self._places, self._topics, self._without_id = {}, {}, {}, 0
        for partition, request in wanted.items():
            self._put(partition, request)
        return SessionRequest(*self._metadata, dict(wanted), [], [], self._without_id == 0)

    def build_incremental(self, changes: Mapping[TopicPartition, PartitionRequest | None]) -> SessionRequest:
        """The next incremental request. `changes` maps partitions to their new requests, None to forget one. Unchanged
        partitions may be among them.
        """
        added: dict[TopicPartition, PartitionRequest] = {}
        altered: list[TopicPartition] = []
        gone: list[TopicPartition] = []
        for partition, request in changes.items():
            previous = self.partitions.get(partition)
            if request is None:
                if previous is not None:
                    gone.append(partition)
            elif previous is None:
                added[partition] = request
            elif request != previous:
                altered.append(partition)
        place = self._places.__getitem__
        forgotten: list[tuple[TopicPartition, bytes]] = []
        if gone:
            forgotten += [(partition, self.partitions[partition].topic_id) for partition in sorted(gone, key=place)]
        replaced: list[tuple[TopicPartition, bytes]] = []
        to_send = dict(added)
        for partition in sorted(altered, key=place):
            request, previous = changes[partition], self.partitions[partition]
            assert request is not None
            to_send[partition] = request
            if request.topic_id != previous.topic_id and ZERO_UUID not in (request.topic_id, previous.topic_id):
                replaced.append((partition, previous.topic_id))
        for partition in gone:
            self._remove(partition)
        for partition, request in to_send.items():
            self._put(partition, request)
        can_use_topic_ids = self._without_id == 0
        if forgotten:
            can_use_topic_ids = can_use_topic_ids and all(topic_id != ZERO_UUID for _, topic_id in forgotten)
        return SessionRequest(*self._metadata, to_send, forgotten, replaced, can_use_topic_ids)

    def _put(self, partition: TopicPartition, request: PartitionRequest) -> None:
        previous = self.partitions.get(partition)
        self.partitions[partition] = request
        if previous is None:
            self._places[partition] = self._next_place
            self._next_place += 1
        elif previous.topic_id == request.topic_id:
            return
        else:
            self._count(partition, previous.topic_id, -1)
        self._count(partition, request.topic_id, 1)

    def _remove(self, partition: TopicPartition) -> None:
        self._count(partition, self.partitions.pop(partition).topic_id, -1)
        del self._places[partition]

    def _count(self, partition: TopicPartition, topic_id: bytes, by: int) -> None:
        if topic_id == ZERO_UUID:
            self._without_id += by
            return
        _, count = self._topics.get(topic_id, ("", 0))
        if count + by:
            self._topics[topic_id] = partition.topic, count + by
        else:
            del self._topics[topic_id]

    def handle_response(self, response: FetchResponse, version: int) -> dict[TopicPartition, PartitionData] | None:
        """The leader's answer for each partition; None when the response has an error or is invalid."""
        session_id, epoch = self._metadata
        is_full = epoch == INITIAL_EPOCH
        if response.error_code != ErrorCode.NONE:
            log.info(
                "Broker %d was unable to process a fetch of session %s: %s",
                self._node,
                self._metadata,
                ErrorCode.for_code(response.error_code).name,
            )
            is_lost = response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
            self._metadata = START if is_lost else (session_id, INITIAL_EPOCH)
            return None
        found, problem = self._read(response, version)
        if is_full and not found and response.throttle_time_ms > 0:
            self._metadata = START
            return None
        if problem is None and is_full and len(found) < len(self.partitions):
            problem = f"nothing about {[str(partition) for partition in self.partitions if partition not in found]}"
        if problem is not None:
            log.info("Broker %d sent an invalid fetch response with %s", self._node, problem)
            self._metadata = START if is_full else (session_id, INITIAL_EPOCH)
            return None
        if response.session_id == INVALID_SESSION_ID:
            self._metadata = START
        else:
            self._metadata = response.session_id if is_full else session_id, 1 if epoch == MAX_EPOCH else epoch + 1
        return found

    def _read(self, response: FetchResponse, version: int) -> tuple[dict[TopicPartition, PartitionData], str | None]:
        """The answers by partition, and a description of the first problem or None."""
        found: dict[TopicPartition, PartitionData] = {}
        for topic in response.responses:
            name = topic.topic if version < TOPIC_ID_VERSION else self._topics.get(topic.topic_id, (None, 0))[0]
            if name is None:
                return found, f"a topic id that was not asked for ({topic.topic_id.hex()})"
            for data in topic.partitions:
                partition = new_tuple(TopicPartition, (name, data.partition_index))
                if partition not in self.partitions:
                    return found, f"a partition that was not asked for ({partition})"
                found[partition] = data
        return found, None

    def handle_error(self) -> None:
        """There was no answer: the next request closes the session and asks for a new one."""
        self._metadata = self._metadata[0], INITIAL_EPOCH
