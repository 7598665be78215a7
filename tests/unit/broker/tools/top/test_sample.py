from __future__ import annotations

import pytest

from odradek.broker.tools.top.sample import take_sample
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from odradek.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from odradek.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from odradek.protocol.topic_partition import TopicPartition
from tests.support.clusters.data_cluster import DataCluster
from tests.support.virtual_test import virtual_test

A = TopicPartition("t", 0)


def answering() -> DataCluster:
    """Broker 2 coordinates the group g; broker 1 has 70 bytes of t-0 and a copy on its way to another directory."""
    cluster = DataCluster()
    cluster.create("t")
    cluster.fill("t", b"a", b"b", b"c")

    def log_dirs(broker_id: int, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
        sizes = [
            DescribeLogDirsPartition(partition_index=0, partition_size=70),
            DescribeLogDirsPartition(partition_index=0, partition_size=5, is_future_key=True),
        ]
        topics = [DescribeLogDirsTopic(name="t", partitions=[size]) for size in sizes] if broker_id == 1 else []
        directories = [
            DescribeLogDirsResult(log_dir="/a", topics=topics, usable_bytes=9),
            DescribeLogDirsResult(log_dir="/b", usable_bytes=8),
        ]
        return DescribeLogDirsResponse(results=directories)

    cluster.on(DescribeLogDirsRequest, log_dirs)
    cluster.on(
        ListGroupsRequest,
        lambda broker_id, request: ListGroupsResponse(groups=[ListedGroup(group_id="g")] if broker_id == 2 else []),
    )
    cluster.on(
        DescribeGroupsRequest,
        lambda broker_id, request: DescribeGroupsResponse(
            groups=[DescribedGroup(group_id="g", group_state="Stable", members=[DescribedGroupMember()])]
        ),
    )
    partitions = [
        OffsetFetchResponsePartitions(partition_index=index, committed_offset=offset)
        for index, offset in ((0, 2), (1, -1))
    ]
    topics = [OffsetFetchResponseTopics(name="t", partitions=partitions)]
    cluster.on(
        OffsetFetchRequest,
        lambda broker_id, request: OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", topics=topics)]),
    )
    return cluster


@virtual_test
async def test_everything_is_asked() -> None:
    cluster = answering()
    sample = await take_sample(cluster.client())
    assert sample.ends == {A: 3}
    assert sample.sizes == {1: {A: 70}, 2: {}}
    assert sample.usable_bytes == {1: 8, 2: 8}
    (group,) = sample.groups
    assert (group.group_id, group.state, group.members, group.coordinator) == ("g", "Stable", 1, 2)
    assert group.committed == {A: 2}


@virtual_test
async def test_a_broker_that_does_not_answer_is_left_out() -> None:
    cluster = answering()
    client = cluster.client()
    await take_sample(client)
    cluster.unreachable = {2}
    sample = await take_sample(client)
    assert (sample.ends, sample.sizes, sample.groups) == ({A: 3}, {1: {A: 70}}, [])


@virtual_test
@pytest.mark.parametrize("failing", ["description", "offsets", "partition"])
async def test_what_is_answered_with_an_error_is_left_out(failing: str) -> None:
    cluster = answering()
    code = int(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    if failing == "description":
        group = DescribedGroup(group_id="g", error_code=code)
        cluster.on(DescribeGroupsRequest, lambda broker_id, request: DescribeGroupsResponse(groups=[group]))
    else:
        partition = OffsetFetchResponsePartitions(partition_index=0, committed_offset=2, error_code=code)
        topics = [OffsetFetchResponseTopics(name="t", partitions=[partition])]
        error = code if failing == "offsets" else 0
        offsets = OffsetFetchResponseGroup(group_id="g", topics=topics, error_code=error)
        cluster.on(OffsetFetchRequest, lambda broker_id, request: OffsetFetchResponse(groups=[offsets]))
    sample = await take_sample(cluster.client())
    assert [group.committed for group in sample.groups] == ([{}] if failing == "partition" else [])
