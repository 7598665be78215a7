"""The follower's side of incremental fetch sessions (KIP-227), decided purely: what a fetch has to say, and whether an
answer can be believed.

    next request                     names                                  after
    session 0, epoch 0               everything                             the start, or an answer without a session
    session n, epoch 0               everything; n is closed                a failure, or an answer that does not fit
    session n, epoch 1, 2, ...       what is new, changed or forgotten      an answer of the session

A partition whose topic was created anew under its name is forgotten under the old id and named under the new one.
Versions from 13 on name topics by id, which needs an id for every topic; the leader refuses a session that changes
between ids and names, and the next request begins a new one.

Answers to FetchSessionHandler and FetchMetadata; the leader's side is broker/fetch_session.py.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.fetch_context import INITIAL_EPOCH, MAX_EPOCH, TOPIC_ID_VERSION
from odradek.broker.fetch_session_cache import INVALID_SESSION_ID
from odradek.protocol.errors import ErrorCode
from odradek.protocol.primitives import ZERO_UUID
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.protocol.messages.fetch import FetchResponse, PartitionData

log = logging.getLogger(__name__)

START: Final = (INVALID_SESSION_ID, INITIAL_EPOCH)


class PartitionRequest(NamedTuple):
    """What a fetch says of one partition. Epochs are -1 and the topic id is zero where there is none."""

    topic_id: bytes
    fetch_offset: int
    log_start_offset: int
    current_leader_epoch: int
    last_fetched_epoch: int


class SessionRequest(NamedTuple):
    """What the next fetch has to carry. `forgotten` pairs partitions with the topic ids they were known by; those in
    `replaced` are to be forgotten only if topics are named by id.
    """

    session_id: int
    session_epoch: int
    partitions: Mapping[TopicPartition, PartitionRequest]
    forgotten: list[tuple[TopicPartition, bytes]]
    replaced: list[tuple[TopicPartition, bytes]]
    can_use_topic_ids: bool


class FetchSessionHandler:
    """The session with one leader. `partitions` is what the leader was last asked for, implied partitions included."""

    __slots__ = ("_metadata", "_node", "_topic_names", "partitions")

    def __init__(self, node: int) -> None:
        self._node = node
        self._metadata = START
        self._topic_names: dict[bytes, str] = {}
        self.partitions: dict[TopicPartition, PartitionRequest] = {}

    @property
    def is_full(self) -> bool:
        """Whether the next request names everything."""
        return self._metadata[1] == INITIAL_EPOCH

    def build(self, wanted: dict[TopicPartition, PartitionRequest]) -> SessionRequest:
        """The next request, if these are the partitions to fetch."""
        can_use_topic_ids = all(request.topic_id != ZERO_UUID for request in wanted.values())
        topic_names = {request.topic_id: partition.topic for partition, request in wanted.items()}
        forgotten: list[tuple[TopicPartition, bytes]] = []
        replaced: list[tuple[TopicPartition, bytes]] = []
        to_send: Mapping[TopicPartition, PartitionRequest]
        if self.is_full:
            self.partitions = to_send = wanted
        else:
            altered: dict[TopicPartition, PartitionRequest] = {}
            for partition, previous in list(self.partitions.items()):
                request = wanted.get(partition)
                if request is None:
                    del self.partitions[partition]
                    forgotten.append((partition, previous.topic_id))
                    can_use_topic_ids = can_use_topic_ids and previous.topic_id != ZERO_UUID
                elif request != previous:
                    self.partitions[partition] = altered[partition] = request
                    if request.topic_id != previous.topic_id and ZERO_UUID not in (request.topic_id, previous.topic_id):
                        replaced.append((partition, previous.topic_id))
            added = {partition: request for partition, request in wanted.items() if partition not in self.partitions}
            self.partitions |= added
            to_send = added | altered
        self._topic_names = topic_names if can_use_topic_ids else {}
        return SessionRequest(*self._metadata, to_send, forgotten, replaced, can_use_topic_ids)

    def handle_response(self, response: FetchResponse, version: int) -> dict[TopicPartition, PartitionData] | None:
        """What the leader says of each partition; None for an answer that is of no use."""
        session_id, epoch = self._metadata
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
        if self.is_full and not found and response.throttle_time_ms > 0:
            self._metadata = START
            return None
        if problem is None and self.is_full and len(found) < len(self.partitions):
            problem = f"nothing about {[str(partition) for partition in self.partitions if partition not in found]}"
        if problem is not None:
            log.info("Broker %d sent an invalid fetch response with %s", self._node, problem)
            self._metadata = START if self.is_full else (session_id, INITIAL_EPOCH)
            return None
        if response.session_id == INVALID_SESSION_ID:
            self._metadata = START
        else:
            self._metadata = response.session_id if self.is_full else session_id, 1 if epoch == MAX_EPOCH else epoch + 1
        return found

    def _read(self, response: FetchResponse, version: int) -> tuple[dict[TopicPartition, PartitionData], str | None]:
        """The answers by partition, and what is wrong with them."""
        found: dict[TopicPartition, PartitionData] = {}
        for topic in response.responses:
            name = topic.topic if version < TOPIC_ID_VERSION else self._topic_names.get(topic.topic_id)
            if name is None:
                return found, f"a topic id that was not asked for ({topic.topic_id.hex()})"
            for data in topic.partitions:
                partition = TopicPartition(name, data.partition_index)
                if partition not in self.partitions:
                    return found, f"a partition that was not asked for ({partition})"
                found[partition] = data
        return found, None

    def handle_error(self) -> None:
        """There was no answer: close the session with the next request, and ask for a new one."""
        self._metadata = self._metadata[0], INITIAL_EPOCH
