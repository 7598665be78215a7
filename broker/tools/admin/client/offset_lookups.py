"""Offsets of partitions by timestamp, asked from their leaders.

Kafka: KafkaAdminClient.listOffsets, ListOffsetsHandler.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.tools.admin.client.partition_leaders import PartitionLeaders, by_topic
from odradek.broker.tools.command.failures import check
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.tools.admin.client.admin_client import AdminClient

LATEST_TIMESTAMP: Final = -1
EARLIEST_TIMESTAMP: Final = -2
NO_RECORD: Final = -1
"""The offset for a timestamp when no record is that late."""

_CLIENT: Final = -1
"""The replica id of a client."""

_READ_UNCOMMITTED: Final = 0
_READ_COMMITTED: Final = 1


class FoundOffset(NamedTuple):
    """The offset for a timestamp, or `NO_RECORD`; or an error."""

    error_code: int
    offset: int = NO_RECORD
    timestamp: int = -1


class OffsetLookups:
    """Looks up offsets."""

    def __init__(self, client: AdminClient, *, read_committed: bool = False) -> None:
        """`read_committed`: the latest offset is the last stable offset, where open transactions begin."""
        self._client = client
        self._isolation_level = _READ_COMMITTED if read_committed else _READ_UNCOMMITTED
        self._leaders = PartitionLeaders(client)

    async def find(self, timestamps: Mapping[TopicPartition, int]) -> dict[TopicPartition, FoundOffset]:
        """The offset of each partition for its timestamp, or an error."""

        async def ask(leader: int, partitions: Sequence[TopicPartition]) -> Mapping[TopicPartition, FoundOffset]:
            topics = [
                ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsPartition(partition_index=index, timestamp=timestamps[TopicPartition(topic, index)])
                        for index in indexes
                    ],
                )
                for topic, indexes in by_topic(partitions).items()
            ]
            request = ListOffsetsRequest(replica_id=_CLIENT, isolation_level=self._isolation_level, topics=topics)
            response = await self._client.ask_broker(leader, request, ListOffsetsResponse)
            return {
                TopicPartition(topic.name, found.partition_index): FoundOffset(
                    found.error_code, found.offset, found.timestamp
                )
                for topic in response.topics
                for found in topic.partitions
            }

        return await self._leaders.ask(timestamps, ask, FoundOffset)

    async def at(self, partitions: Iterable[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
        """The offset of each partition for one timestamp. Raises: CommandFailed for an error."""
        found = await self.find(dict.fromkeys(partitions, timestamp))
        for tp, result in found.items():
            check(result.error_code, None, f"Offset of {tp}")
        return {tp: result.offset for tp, result in found.items()}
