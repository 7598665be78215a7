"""Requests for the descriptions and committed offsets of many groups at once.

Kafka: KafkaAdminClient.describeConsumerGroups, KafkaAdminClient.listConsumerGroupOffsets.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.broker.tools.admin.client.coordinators import KeyType, ask_coordinators
from odradek.broker.tools.admin.groups.group_listing import CONSUMER_PROTOCOL
from odradek.broker.tools.command.failures import CommandFailed, check
from odradek.protocol.codec.codec import DecodeError, decode_from
from odradek.protocol.messages.consumer_protocol import ConsumerProtocolAssignment
from odradek.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
)
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.tools.admin.client.admin_client import AdminClient

NOT_COMMITTED: Final = -1
DEAD: Final = "Dead"
EMPTY: Final = "Empty"


class DescribedAt(NamedTuple):
    """A group, and the broker that coordinates it."""

    error_code: int
    group: DescribedGroup
    broker_id: int


async def describe_groups(client: AdminClient, groups: Iterable[str]) -> dict[str, DescribedAt]:
    """Each group; one that does not exist has the state Dead. Raises: CommandFailed."""

    async def ask(broker_id: int, names: Sequence[str]) -> Mapping[str, DescribedAt]:
        request = DescribeGroupsRequest(groups=list(names))
        response = await client.ask_broker(broker_id, request, DescribeGroupsResponse)
        return {found.group_id: DescribedAt(found.error_code, found, broker_id) for found in response.groups}

    described = await ask_coordinators(client, KeyType.GROUP, groups, ask)
    for name, found in described.items():
        check(found.error_code, None, f"Group '{name}'")
        if found.group.protocol_type not in (CONSUMER_PROTOCOL, ""):
            raise CommandFailed(f"GroupId {name} is not a consumer group ({found.group.protocol_type}).")
    return described


async def committed_offsets(client: AdminClient, groups: Iterable[str]) -> dict[str, dict[TopicPartition, int]]:
    """The committed offsets of each group. Raises: CommandFailed."""

    async def ask(broker_id: int, names: Sequence[str]) -> Mapping[str, OffsetFetchResponseGroup]:
        request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=name, topics=None) for name in names])
        response = await client.ask_broker(broker_id, request, OffsetFetchResponse)
        return {found.group_id: found for found in response.groups}

    offsets: dict[str, dict[TopicPartition, int]] = {}
    for name, group in (await ask_coordinators(client, KeyType.GROUP, groups, ask)).items():
        check(group.error_code, None, f"Offsets of group '{name}'")
        of_group = offsets[name] = {}
        for topic in group.topics:
            for partition in topic.partitions:
                tp = TopicPartition(topic.name, partition.partition_index)
                check(partition.error_code, None, f"Offset of group '{name}' in {tp}")
                if partition.committed_offset != NOT_COMMITTED:
                    of_group[tp] = partition.committed_offset
    return offsets


def assigned_partitions(member: DescribedGroupMember) -> list[TopicPartition]:
    """The partitions of a member of a consumer group, in order. Raises: CommandFailed if they cannot be read."""
    if not member.member_assignment:
        return []
    try:
        # Version 0 is the beginning of all versions.
        assignment, _ = decode_from(ConsumerProtocolAssignment, memoryview(member.member_assignment)[2:], 0)
    except DecodeError as error:
        raise CommandFailed(f"the assignment of member {member.member_id} cannot be read: {error}") from error
    return sorted(
        TopicPartition(topic.topic, partition)
        for topic in assignment.assigned_partitions
        for partition in topic.partitions
    )
