"""One sample of a cluster: metadata, ends of logs, sizes on the disks, groups with their offsets.

All brokers are asked at the same time. A broker that does not answer is left out of this sample, and so is a group
whose state or offsets are answered with an error.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.command.socket_loop import gather
from odradek.broker.tools.data.consumer.start_offsets import LATEST, list_offsets
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.broker.tools.data.client.data_client import DataClient
    from odradek.protocol.messages.describe_groups import DescribedGroup

PURPOSE: Final = "sample"


@dataclass(slots=True)
class GroupSample:
    """A group, and the offsets that it has committed."""

    group_id: str
    coordinator: int
    state: str
    members: int
    committed: dict[TopicPartition, int] = field(default_factory=dict)


@dataclass(slots=True)
class Sample:
    """A cluster at one moment."""

    metadata: MetadataResponse
    monotonic_ms: int
    time_ms: int
    ends: dict[TopicPartition, int] = field(default_factory=dict)
    """High watermarks."""
    sizes: dict[int, dict[TopicPartition, int]] = field(default_factory=dict)
    """Bytes of each replica, by broker."""
    usable_bytes: dict[int, int] = field(default_factory=dict)
    """Free space in the log directories of a broker; absent if the broker's answer does not have it."""
    groups: list[GroupSample] = field(default_factory=list)


async def take_sample(client: DataClient) -> Sample:
    """Ask all brokers. Raises: CommandFailed if none answers, or if one refuses."""
    metadata = await client.ask_any(MetadataRequest(topics=None, allow_auto_topic_creation=False), MetadataResponse)
    client.cluster.update(metadata)
    client.cluster.forget_missing(topic.name or "" for topic in metadata.topics)
    sample = Sample(metadata, client.clock.monotonic_ms(), client.clock.time_ms())
    partitions = [
        TopicPartition(topic.name or "", partition.partition_index)
        for topic in metadata.topics
        for partition in topic.partitions
    ]
    nodes = [node.node_id for node in metadata.brokers]
    work = [_log_dirs(client, node, sample) for node in nodes] + [_groups(client, node, sample) for node in nodes]
    await gather([_ends(client, partitions, sample), *work])
    return sample


async def _ends(client: DataClient, partitions: Iterable[TopicPartition], sample: Sample) -> None:
    sample.ends = await list_offsets(client, dict.fromkeys(partitions, LATEST), read_committed=False)


async def _log_dirs(client: DataClient, node: int, sample: Sample) -> None:
    request = DescribeLogDirsRequest(topics=None)
    try:
        response = await client.ask(node, request, DescribeLogDirsResponse, purpose=PURPOSE)
    except OSError:
        return
    usable = [found.usable_bytes for found in response.results if found.error_code == ErrorCode.NONE]
    if usable and min(usable) >= 0:
        sample.usable_bytes[node] = min(usable)  # directories may share a disk
    sample.sizes[node] = {
        TopicPartition(topic.name, partition.partition_index): partition.partition_size
        for result in response.results
        for topic in result.topics
        for partition in topic.partitions
        if not partition.is_future_key
    }


async def _groups(client: DataClient, node: int, sample: Sample) -> None:
    """The groups that a broker coordinates."""
    try:
        listed = await client.ask(node, ListGroupsRequest(), ListGroupsResponse, purpose=PURPOSE)
        names = [group.group_id for group in listed.groups]
        if not names:
            return
        described = await client.ask(node, DescribeGroupsRequest(groups=names), DescribeGroupsResponse, purpose=PURPOSE)
        wanted = [OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]
        fetched = await client.ask(node, OffsetFetchRequest(groups=wanted), OffsetFetchResponse, purpose=PURPOSE)
    except OSError:
        return
    committed = {
        group.group_id: {
            TopicPartition(topic.name, partition.partition_index): partition.committed_offset
            for topic in group.topics
            for partition in topic.partitions
            if partition.error_code == ErrorCode.NONE and partition.committed_offset >= 0
        }
        for group in fetched.groups
        if group.error_code == ErrorCode.NONE
    }
    sample.groups += [
        _group(found, node, committed[found.group_id])
        for found in described.groups
        if found.error_code == ErrorCode.NONE and found.group_id in committed  # else it would seem to have no lag
    ]


def _group(found: DescribedGroup, node: int, committed: dict[TopicPartition, int]) -> GroupSample:
    return GroupSample(found.group_id, node, found.group_state, len(found.members), committed)
