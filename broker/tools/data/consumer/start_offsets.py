"""Finds offsets by ListOffsets: the beginning and end of partitions, the first record of a time.

Kafka: OffsetFetcher.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.command.failures import CommandFailed, error_text
from odradek.broker.tools.data.consumer.offset_choice import OffsetChoice, Origin
from odradek.protocol.errors import RETRIABLE, ErrorCode
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.offsets import SpecialTimestamp

if TYPE_CHECKING:
    from odradek.broker.tools.data.client.data_client import DataClient

LATEST: Final = SpecialTimestamp.LATEST
EARLIEST: Final = SpecialTimestamp.EARLIEST


async def find_offsets(
    client: DataClient, choices: Mapping[TopicPartition, OffsetChoice], *, read_committed: bool
) -> dict[TopicPartition, int]:
    """The offset of each choice; partitions that cannot be asked at present are left out.

    "The end" is the last stable offset with `read_committed`, else the high watermark.
    Raises: CommandFailed for an error that time does not mend.
    """
    found = {key: choice.number for key, choice in choices.items() if choice.origin is Origin.OFFSET}
    starts = {Origin.BEGINNING: EARLIEST, Origin.END: LATEST, Origin.TAIL: LATEST}
    asked = {key: starts.get(choice.origin, choice.number) for key, choice in choices.items() if key not in found}
    answers = await list_offsets(client, asked, read_committed=read_committed)
    behind = [key for key, offset in answers.items() if offset < 0]  # no record of that time or later: the end
    answers |= await list_offsets(client, dict.fromkeys(behind, LATEST), read_committed=read_committed)
    tails = [key for key in answers if choices[key].origin is Origin.TAIL]
    beginnings = await list_offsets(client, dict.fromkeys(tails, EARLIEST), read_committed=read_committed)
    for key in tails:
        if key in beginnings:
            answers[key] = max(beginnings[key], answers[key] - choices[key].number)
        else:
            del answers[key]
    return found | {key: offset for key, offset in answers.items() if offset >= 0}


async def list_offsets(
    client: DataClient, timestamps: Mapping[TopicPartition, int], *, read_committed: bool
) -> dict[TopicPartition, int]:
    """The offset of each timestamp, -1 where there is none; as `find_offsets` otherwise."""
    by_leader: dict[int, list[TopicPartition]] = {}
    for key in timestamps:
        leader = client.cluster.leader(key)
        if leader is not None:
            by_leader.setdefault(leader, []).append(key)
    found: dict[TopicPartition, int] = {}
    for leader, keys in by_leader.items():
        request = ListOffsetsRequest(
            replica_id=-1, isolation_level=int(read_committed), topics=list(_topics(keys, timestamps))
        )
        try:
            response = await client.ask(leader, request, ListOffsetsResponse, purpose="metadata")
        except OSError:
            continue
        for topic in response.topics:
            for partition in topic.partitions:
                key = TopicPartition(topic.name, partition.partition_index)
                if partition.error_code == ErrorCode.NONE:
                    found[key] = partition.offset
                elif partition.error_code not in RETRIABLE:
                    raise CommandFailed(f"{key}: {error_text(partition.error_code)}")
    return found


def _topics(keys: Iterable[TopicPartition], timestamps: Mapping[TopicPartition, int]) -> Iterable[ListOffsetsTopic]:
    by_topic: dict[str, list[ListOffsetsPartition]] = {}
    for key in keys:
        by_topic.setdefault(key.topic, []).append(
            ListOffsetsPartition(partition_index=key.partition, timestamp=timestamps[key])
        )
    return (ListOffsetsTopic(name=name, partitions=partitions) for name, partitions in by_topic.items())
