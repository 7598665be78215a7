"""Groups of a cluster for tests of commands: the answers of their coordinators."""

from __future__ import annotations

from odradek.protocol.codec.codec import encode
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_protocol import AssignmentTopicPartition, ConsumerProtocolAssignment
from odradek.protocol.messages.delete_groups import DeletableGroupResult, DeleteGroupsRequest, DeleteGroupsResponse
from odradek.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribedGroupMember,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from odradek.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.list_groups import ListedGroup, ListGroupsRequest, ListGroupsResponse
from odradek.protocol.messages.list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from odradek.protocol.topic_partition import TopicPartition
from tests.support.clusters.admin_cluster import AdminCluster

LOG_START, LOG_END = 10, 100
"""Of every partition."""
RECORD_TIME_MS = 5_000
"""A record with offset 50 has this timestamp, and none is later."""


def member(name: str, *partitions: tuple[str, list[int]], instance: str | None = None) -> DescribedGroupMember:
    assigned = [AssignmentTopicPartition(topic=topic, partitions=found) for topic, found in partitions]
    assignment = b"\0\0" + encode(ConsumerProtocolAssignment(assigned_partitions=assigned), 0)
    return DescribedGroupMember(
        member_id=name,
        client_id=f"client-{name}",
        client_host="/127.0.0.1",
        group_instance_id=instance,
        member_assignment=bytes(assignment),
    )


class AdminGroups:
    """All groups have broker 3 as their coordinator."""

    def __init__(self, cluster: AdminCluster) -> None:
        self.cluster = cluster
        self.groups: dict[str, DescribedGroup] = {}
        self.offsets: dict[str, dict[TopicPartition, int]] = {}
        self.commits: list[tuple[str, TopicPartition, int]] = []
        self.errors: list[ErrorCode] = []
        """Errors of the next descriptions and deletions of offsets, one each."""
        self.commit_errors: list[ErrorCode] = []
        cluster.on(FindCoordinatorRequest, self._find)
        cluster.on(ListGroupsRequest, self._list)
        cluster.on(DescribeGroupsRequest, self._describe)
        cluster.on(OffsetFetchRequest, self._fetch)
        cluster.on(OffsetCommitRequest, self._commit)
        cluster.on(OffsetDeleteRequest, self._delete_offsets)
        cluster.on(DeleteGroupsRequest, self._delete)
        cluster.on(ListOffsetsRequest, list_offsets)

    def has(
        self,
        name: str,
        *members: DescribedGroupMember,
        state: str = "Empty",
        protocol_type: str = "consumer",
        offsets: dict[tuple[str, int], int] | None = None,
    ) -> None:
        self.groups[name] = DescribedGroup(
            group_id=name,
            group_state=state,
            protocol_type=protocol_type,
            protocol_data="range" if members else "",
            members=list(members),
        )
        self.offsets[name] = {TopicPartition(*tp): offset for tp, offset in (offsets or {}).items()}

    def _error(self) -> ErrorCode:
        return self.errors.pop(0) if self.errors else ErrorCode.NONE

    def _find(self, broker_id: int, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        found = [Coordinator(key=key, node_id=3, host="host", port=9003) for key in request.coordinator_keys]
        return FindCoordinatorResponse(coordinators=found)

    def _list(self, broker_id: int, request: ListGroupsRequest) -> ListGroupsResponse:
        found = [
            ListedGroup(group_id=name, protocol_type=group.protocol_type, group_state=group.group_state)
            for name, group in self.groups.items()
            if not request.states_filter or group.group_state in request.states_filter
        ]
        for group in found:
            group.group_type = "classic"
        return ListGroupsResponse(groups=found if broker_id == 3 else [])

    def _describe(self, broker_id: int, request: DescribeGroupsRequest) -> DescribeGroupsResponse:
        assert broker_id == 3
        error = self._error()
        dead = [DescribedGroup(group_id=name, group_state="Dead", error_code=error) for name in request.groups]
        found = dead if error else [self.groups.get(group.group_id, group) for group in dead]
        return DescribeGroupsResponse(groups=found)

    def _fetch(self, broker_id: int, request: OffsetFetchRequest) -> OffsetFetchResponse:
        groups = []
        for asked in request.groups:
            topics: dict[str, OffsetFetchResponseTopics] = {}
            for tp, offset in self.offsets.get(asked.group_id, {}).items():
                partition = OffsetFetchResponsePartitions(partition_index=tp.partition, committed_offset=offset)
                topics.setdefault(tp.topic, OffsetFetchResponseTopics(name=tp.topic)).partitions.append(partition)
            groups.append(OffsetFetchResponseGroup(group_id=asked.group_id, topics=list(topics.values())))
        return OffsetFetchResponse(groups=groups)

    def _commit(self, broker_id: int, request: OffsetCommitRequest) -> OffsetCommitResponse:
        error = self.commit_errors.pop(0) if self.commit_errors else ErrorCode.NONE
        topics = []
        for topic in request.topics:
            found = [OffsetCommitResponsePartition(partition_index=p.partition_index) for p in topic.partitions]
            for partition, result in zip(topic.partitions, found, strict=True):
                result.error_code = error
                tp = TopicPartition(topic.name, partition.partition_index)
                self.commits.append((request.group_id, tp, partition.committed_offset))
            topics.append(OffsetCommitResponseTopic(name=topic.name, partitions=found))
        return OffsetCommitResponse(topics=topics)

    def _delete_offsets(self, broker_id: int, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
        if request.group_id not in self.groups:
            return OffsetDeleteResponse(error_code=ErrorCode.GROUP_ID_NOT_FOUND)
        error = self._error()
        topics = [
            OffsetDeleteResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetDeleteResponsePartition(partition_index=partition.partition_index, error_code=error)
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return OffsetDeleteResponse(topics=topics)

    def _delete(self, broker_id: int, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
        results = []
        for name in request.groups_names:
            error = ErrorCode.NONE if name in self.groups else ErrorCode.GROUP_ID_NOT_FOUND
            if name in self.groups and self.groups[name].members:
                error = ErrorCode.NON_EMPTY_GROUP
            results.append(DeletableGroupResult(group_id=name, error_code=error))
        return DeleteGroupsResponse(results=results)


def list_offsets(broker_id: int, request: ListOffsetsRequest) -> ListOffsetsResponse:
    """The answer of any leader."""
    by_time = {-1: LOG_END, -2: LOG_START}

    def offset(timestamp: int) -> int:
        return by_time.get(timestamp, 50 if timestamp <= RECORD_TIME_MS else -1)

    return ListOffsetsResponse(
        topics=[
            ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    ListOffsetsPartitionResponse(
                        partition_index=partition.partition_index, offset=offset(partition.timestamp)
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )
