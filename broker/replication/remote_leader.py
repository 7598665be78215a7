"""A follower's requests to a leader, over a link: Fetch in sessions, and ListOffsets after OFFSET_OUT_OF_RANGE.

The versions are those of the inter-broker protocol, without ApiVersions: at 3.9 Fetch v17, v12 while a topic has no id,
and ListOffsets v9. OffsetForLeaderEpoch, which Apache Kafka's followers can send, is never sent: from 2.7 on the answer
to a fetch tells where the logs diverge, and a log without epochs cannot ask for one.

Kafka: RemoteLeaderEndPoint, BrokerBlockingSender.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.broker.replication.fetch_session_handler import FetchSessionHandler
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    ForgottenTopic,
    ReplicaState,
)
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from odradek.broker.inter_broker.ports import BrokerLink
    from odradek.broker.replication.fetch_session_handler import PartitionRequest, SessionRequest
    from odradek.broker.replication.fetcher_settings import RemoteLeaderSettings
    from odradek.protocol.messages.fetch import PartitionData
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.offsets import SpecialTimestamp

FETCH_VERSION_WITHOUT_TOPIC_IDS: Final = 12
FIRST_FETCH_VERSION_WITH_REPLICA_STATE: Final = 15

_SESSION_IS_OVER: Final = (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH)


class RemoteLeaderEndPoint:
    """One fetcher's connection to a leader: one request at a time."""

    def __init__(self, leader_id: int, link: BrokerLink, settings: RemoteLeaderSettings) -> None:
        self.session = FetchSessionHandler(leader_id)
        self._link = link
        self._settings = settings
        self._fetch_version = settings.metadata_version.fetch_request_version

    def close(self) -> None:
        self._link.close()

    async def fetch(self, request: SessionRequest) -> dict[TopicPartition, PartitionData]:
        """The leader's answer by partition; empty if the session has to begin again.

        Raises: OSError; KafkaError for any other error of the whole answer, where Apache Kafka fetches again at once.
        """
        version = self._fetch_version if request.can_use_topic_ids else FETCH_VERSION_WITHOUT_TOPIC_IDS
        try:
            response = await self._link.exchange(
                _fetch_request(request, self._settings, version),
                FetchResponse,
                version=version,
                timeout_ms=self._settings.socket_timeout_ms,
            )
        except OSError:
            self.session.handle_error()
            raise
        found = self.session.handle_response(response, version)
        if response.error_code != ErrorCode.NONE and response.error_code not in _SESSION_IS_OVER:
            error = ErrorCode.for_code(response.error_code)
            raise KafkaError(error, f"The leader answered {error.name}")
        return found or {}

    async def offset(self, topic_partition: TopicPartition, leader_epoch: int, timestamp: SpecialTimestamp) -> int:
        """The leader's first or last offset. Raises: OSError; KafkaError."""
        topic, index = topic_partition
        partition = ListOffsetsPartition(
            partition_index=index, current_leader_epoch=leader_epoch, timestamp=int(timestamp)
        )
        request = ListOffsetsRequest(
            replica_id=self._settings.broker_id, topics=[ListOffsetsTopic(name=topic, partitions=[partition])]
        )
        response = await self._link.exchange(
            request,
            ListOffsetsResponse,
            version=self._settings.metadata_version.list_offsets_request_version,
            timeout_ms=self._settings.socket_timeout_ms,
        )
        for answered in response.topics:
            for answer in answered.partitions:
                if (answered.name, answer.partition_index) == topic_partition:
                    if answer.error_code != ErrorCode.NONE:
                        error = ErrorCode.for_code(answer.error_code)
                        raise KafkaError(error, f"The leader of {topic_partition} answered {error.name}")
                    return answer.offset
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"The leader's answer does not name {topic_partition}")


def _fetch_request(request: SessionRequest, settings: RemoteLeaderSettings, version: int) -> FetchRequest:
    forgotten = request.forgotten + (request.replaced if request.can_use_topic_ids else [])
    fetch = FetchRequest(
        max_wait_ms=settings.wait_max_ms,
        min_bytes=settings.min_bytes,
        max_bytes=settings.response_max_bytes,
        session_id=request.session_id,
        session_epoch=request.session_epoch,
        topics=_topics(request.partitions.items(), settings.max_bytes),
        forgotten_topics_data=_forgotten(forgotten) if forgotten else [],
    )
    if version >= FIRST_FETCH_VERSION_WITH_REPLICA_STATE:
        fetch.replica_state = ReplicaState(replica_id=settings.broker_id, replica_epoch=settings.broker_epoch())
    else:
        fetch.replica_id = settings.broker_id
    return fetch


def _topics(partitions: Iterable[tuple[TopicPartition, PartitionRequest]], max_bytes: int) -> list[FetchTopic]:
    """Group consecutive partitions of one topic; the leader serves them in this order."""
    topics: list[FetchTopic] = []
    found: list[FetchPartition] = []
    for (topic, index), asked in partitions:
        if not topics or topics[-1].topic != topic:
            found = []
            topics.append(FetchTopic(topic=topic, topic_id=asked.topic_id, partitions=found))
        found.append(
            FetchPartition(
                partition=index,
                current_leader_epoch=asked.current_leader_epoch,
                fetch_offset=asked.fetch_offset,
                last_fetched_epoch=asked.last_fetched_epoch,
                log_start_offset=asked.log_start_offset,
                partition_max_bytes=max_bytes,
            )
        )
    return topics


def _forgotten(partitions: Iterable[tuple[TopicPartition, bytes]]) -> list[ForgottenTopic]:
    topics: dict[tuple[str, bytes], ForgottenTopic] = {}
    for (topic, index), topic_id in partitions:
        entry = topics.setdefault((topic, topic_id), ForgottenTopic(topic=topic, topic_id=topic_id, partitions=[]))
        entry.partitions.append(index)
    return list(topics.values())
