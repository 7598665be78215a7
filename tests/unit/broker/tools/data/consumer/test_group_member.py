from __future__ import annotations

from collections.abc import Collection, Mapping

import pytest

from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.command.socket_loop import spawn, turn
from odradek.broker.tools.data.client.data_client import Unavailable
from odradek.broker.tools.data.consumer.group_member import GroupConfig, GroupMember
from odradek.broker.tools.data.consumer.member_metadata import (
    Claim,
    decode_sticky_subscription,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.join_group import JoinGroupRequest, JoinGroupResponse, JoinGroupResponseMember
from odradek.protocol.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupResponse
from odradek.protocol.topic_partition import TopicPartition
from tests.support.clusters.data_cluster import DataCluster
from tests.support.virtual_test import virtual_test

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


class Coordinator:
    """Answers as a coordinator with this member, which it makes the leader, and one more."""

    def __init__(self, cluster: DataCluster) -> None:
        self.cluster = cluster
        self.join_errors: list[ErrorCode] = [ErrorCode.MEMBER_ID_REQUIRED]
        self.sync_errors: list[ErrorCode] = []
        self.heartbeat_errors: list[ErrorCode] = []
        self.commit_errors: list[ErrorCode] = []
        self.generation = 0
        self.leader = "me"
        self.protocol = "range"
        self.assigned: list[TopicPartition] = [B]
        """If another member leads."""
        self.committed: dict[int, int] = {0: 5}
        cluster.on(JoinGroupRequest, self._join)
        cluster.on(SyncGroupRequest, self._sync)
        cluster.on(HeartbeatRequest, lambda _, request: HeartbeatResponse(error_code=_next(self.heartbeat_errors)))
        cluster.on(LeaveGroupRequest, lambda _, request: LeaveGroupResponse())
        cluster.on(OffsetCommitRequest, self._commit)
        cluster.on(OffsetFetchRequest, self._fetch)

    def _join(self, broker_id: int, request: JoinGroupRequest) -> JoinGroupResponse:
        code = _next(self.join_errors)
        if code != ErrorCode.NONE:
            return JoinGroupResponse(error_code=code, member_id="me", protocol_name="")
        self.generation += 1
        members = [
            JoinGroupResponseMember(member_id=name, metadata=encode_subscription(["t"])) for name in ("me", "other")
        ]
        return JoinGroupResponse(
            generation_id=self.generation,
            protocol_name=self.protocol,
            leader=self.leader,
            member_id="me",
            members=members if self.leader == "me" else [],
        )

    def _sync(self, broker_id: int, request: SyncGroupRequest) -> SyncGroupResponse:
        assignment = next((found.assignment for found in request.assignments if found.member_id == "me"), None)
        return SyncGroupResponse(
            error_code=_next(self.sync_errors),
            assignment=encode_assignment(self.assigned) if assignment is None else assignment,
        )

    def _commit(self, broker_id: int, request: OffsetCommitRequest) -> OffsetCommitResponse:
        code = _next(self.commit_errors)
        partition = OffsetCommitResponsePartition(partition_index=0, error_code=code)
        return OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="t", partitions=[partition])])

    def _fetch(self, broker_id: int, request: OffsetFetchRequest) -> OffsetFetchResponse:
        partitions = [
            OffsetFetchResponsePartitions(partition_index=index, committed_offset=self.committed.get(index, -1))
            for index in request.groups[0].topics[0].partition_indexes  # type: ignore[index]
        ]
        topic = OffsetFetchResponseTopics(name="t", partitions=partitions)
        return OffsetFetchResponse(groups=[OffsetFetchResponseGroup(group_id="g", topics=[topic])])


def _next(errors: list[ErrorCode]) -> ErrorCode:
    return errors.pop(0) if errors else ErrorCode.NONE


async def counts(topics: Collection[str]) -> Mapping[str, int]:
    return dict.fromkeys(topics, 2)


async def joined(cluster: DataCluster, **config: object) -> GroupMember:
    client = cluster.client()
    await client.refresh(())
    member = GroupMember(client, GroupConfig(group_id="g", **config))  # type: ignore[arg-type]
    assert await member.join(["t"], counts)
    return member


@virtual_test
async def test_the_leader_assigns() -> None:
    cluster = DataCluster()
    Coordinator(cluster)
    member = await joined(cluster)
    assert member.is_leader
    assert not member.needs_rejoin
    assert [request.member_id for request in cluster.requests(JoinGroupRequest)] == ["", "me"]
    (sync,) = cluster.requests(SyncGroupRequest)
    assert {found.member_id: found.assignment for found in sync.assignments} == {
        "me": encode_assignment([A]),
        "other": encode_assignment([B]),
    }
    await member.leave()
    (left,) = cluster.requests(LeaveGroupRequest)
    assert [found.member_id for found in left.members] == ["me"]


@virtual_test
async def test_a_follower_takes_what_it_gets() -> None:
    cluster = DataCluster()
    Coordinator(cluster).leader = "other"
    client = cluster.client()
    await client.refresh(())
    member = GroupMember(client, GroupConfig(group_id="g"))
    assert await member.join(["t"], counts) == [B]
    assert cluster.requests(SyncGroupRequest)[0].assignments == []
    await member.leave()


@virtual_test
async def test_it_joins_again_until_it_has_an_assignment() -> None:
    cluster = DataCluster()
    coordinator = Coordinator(cluster)
    coordinator.join_errors = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR]
    coordinator.sync_errors = [ErrorCode.REBALANCE_IN_PROGRESS]
    member = await joined(cluster)
    assert len(cluster.requests(FindCoordinatorRequest)) == 2
    assert coordinator.generation == 2
    await member.leave()


@virtual_test
async def test_an_error_that_stays() -> None:
    cluster = DataCluster()
    Coordinator(cluster).join_errors = [ErrorCode.INCONSISTENT_GROUP_PROTOCOL]
    with pytest.raises(CommandFailed, match="group g: JoinGroup: The group member's supported protocols"):
        await joined(cluster)


@virtual_test
async def test_heartbeats_say_when_to_join_again() -> None:
    cluster = DataCluster()
    coordinator = Coordinator(cluster)
    coordinator.heartbeat_errors = [ErrorCode.NONE, ErrorCode.REBALANCE_IN_PROGRESS]
    member = await joined(cluster)
    await cluster.client().wait(3_500)
    assert not member.needs_rejoin
    await cluster.client().wait(3_000)
    assert member.needs_rejoin
    await cluster.client().wait(10_000)
    assert len(cluster.requests(HeartbeatRequest)) == 2, "none before it has joined again"
    await member.join(["t"], counts)
    await cluster.client().wait(3_500)
    assert cluster.requests(HeartbeatRequest)[-1].generation_id == 2
    await member.leave()


@virtual_test
async def test_a_heartbeat_that_is_refused_ends_it() -> None:
    cluster = DataCluster()
    Coordinator(cluster).heartbeat_errors = [ErrorCode.FENCED_INSTANCE_ID]
    member = await joined(cluster, group_instance_id="i")
    await cluster.client().wait(3_500)
    assert "another consumer with the same group.instance.id" in str(member.failure)
    await member.leave()
    assert not cluster.requests(LeaveGroupRequest), "a static member does not leave"


@virtual_test
async def test_a_member_that_was_forgotten_joins_as_a_new_one() -> None:
    cluster = DataCluster()
    coordinator = Coordinator(cluster)
    coordinator.heartbeat_errors = [ErrorCode.UNKNOWN_MEMBER_ID]
    member = await joined(cluster)
    await cluster.client().wait(3_500)
    await member.join(["t"], counts)
    assert cluster.requests(JoinGroupRequest)[-1].member_id == ""
    await member.leave()


@virtual_test
async def test_offsets() -> None:
    cluster = DataCluster()
    coordinator = Coordinator(cluster)
    member = await joined(cluster)
    assert await member.committed([A, B]) == {A: 5}
    coordinator.commit_errors = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    assert await member.commit({A: 7})
    commit = cluster.requests(OffsetCommitRequest)[-1]
    assert (commit.member_id, commit.generation_id_or_member_epoch) == ("me", 1)
    assert commit.topics[0].partitions[0].committed_offset == 7
    assert await member.commit({}) == {}
    assert len(cluster.requests(OffsetCommitRequest)) == 2, "nothing is sent for nothing"
    await member.leave()


@virtual_test
async def test_a_commit_does_not_wait_for_a_topic_that_was_deleted(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = DataCluster()
    coordinator = Coordinator(cluster)
    member = await joined(cluster)
    coordinator.commit_errors = [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    began_ms = cluster.clock.monotonic_ms()
    other = TopicPartition("other", 3)
    assert await member.commit({A: 7, other: 4}) == {other: 4}
    assert cluster.clock.monotonic_ms() == began_ms
    assert capsys.readouterr().err == (
        "odradek: warning: the offset of t-0 is not committed: UNKNOWN_TOPIC_OR_PARTITION\n"
    )
    coordinator.commit_errors = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert await member.commit({A: 7}) == {}
    assert len(cluster.requests(OffsetCommitRequest)) == 3
    await member.leave()


@virtual_test
async def test_a_coordinator_that_takes_no_offsets_for_a_minute_is_not_available() -> None:
    cluster = DataCluster()
    coordinator = Coordinator(cluster)
    member = await joined(cluster)
    coordinator.commit_errors = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 1_000
    with pytest.raises(Unavailable, match="group g: offsets could not be committed"):
        await member.commit({A: 7})
    await member.leave()


@virtual_test
async def test_a_commit_after_the_group_has_moved_on() -> None:
    cluster = DataCluster()
    coordinator = Coordinator(cluster)
    member = await joined(cluster)
    coordinator.commit_errors = [ErrorCode.ILLEGAL_GENERATION]
    assert not await member.commit({A: 7})
    assert member.needs_rejoin
    await member.leave()


@virtual_test
async def test_nothing_is_committed_without_a_generation(capsys: pytest.CaptureFixture[str]) -> None:
    cluster = DataCluster()
    coordinator = Coordinator(cluster)
    member = await joined(cluster)
    coordinator.commit_errors = [ErrorCode.UNKNOWN_MEMBER_ID]
    for _ in range(2):
        assert not await member.commit({A: 7})
    assert len(cluster.requests(OffsetCommitRequest)) == 1, "an empty group takes commits from outside"
    assert "the member has lost its place in the group" in capsys.readouterr().err
    await member.leave()


@virtual_test
async def test_a_coordinator_that_does_not_answer_is_looked_for_again() -> None:
    cluster = DataCluster()
    Coordinator(cluster)
    member = await joined(cluster)
    cluster.unreachable = {2}
    cluster.brokers = [1, 2]
    task = spawn(member.commit({A: 7}))
    await turn()
    await turn()
    await turn()
    cluster.unreachable = set()
    await task.ended.wait()
    assert task.result()
    assert len(cluster.requests(FindCoordinatorRequest)) == 2
    await member.leave()


COOPERATIVE = ("cooperative-sticky",)


def claims(cluster: DataCluster) -> list[Claim]:
    return [
        decode_subscription("me", None, protocol.metadata).claim
        for request in cluster.requests(JoinGroupRequest)
        for protocol in request.protocols
        if protocol.name == "cooperative-sticky"
    ]


@virtual_test
async def test_a_cooperative_member_claims_what_it_has() -> None:
    cluster = DataCluster()
    coordinator = Coordinator(cluster)
    coordinator.protocol = "cooperative-sticky"
    member = await joined(cluster, assignors=COOPERATIVE)
    assert member.config.is_cooperative
    await member.join(["t"], counts, [A])
    assert claims(cluster)[-1] == Claim(frozenset({A}), 1)
    coordinator.sync_errors = [ErrorCode.REBALANCE_IN_PROGRESS]
    await member.join(["t"], counts, [A])
    assert claims(cluster)[-1] == Claim(frozenset({A}), 2), "it has no assignment of the third generation"
    coordinator.heartbeat_errors = [ErrorCode.UNKNOWN_MEMBER_ID]
    await cluster.client().wait(3_500)
    assert member.has_lost_partitions
    await member.join(["t"], counts, [A])
    assert claims(cluster)[-1] == Claim(), "others may have them"
    await member.leave()


@virtual_test
async def test_a_sticky_member_tells_what_it_had_in_which_generation() -> None:
    cluster = DataCluster()
    coordinator = Coordinator(cluster)
    coordinator.protocol = "sticky"
    member = await joined(cluster, assignors=("sticky",))
    second = await member.join(["t"], counts)
    coordinator.heartbeat_errors = [ErrorCode.UNKNOWN_MEMBER_ID]
    await cluster.client().wait(3_500)
    await member.join(["t"], counts)
    told = [
        decode_sticky_subscription("me", None, protocol.metadata).claim
        for request in cluster.requests(JoinGroupRequest)
        for protocol in request.protocols
    ]
    assert told[:2] == [Claim(), Claim()], "the first one got the member id"
    assert [claim.generation for claim in told[2:]] == [1, 2]
    assert told[2].owned
    assert told[3].owned == set(second), "also after the group has forgotten the member"
    await member.leave()


@virtual_test
async def test_an_eager_member_offers_all_assignors_and_claims_nothing() -> None:
    cluster = DataCluster()
    Coordinator(cluster)
    member = await joined(cluster)
    assert not member.config.is_cooperative
    (_, request) = cluster.requests(JoinGroupRequest)
    assert [protocol.name for protocol in request.protocols] == ["range", "roundrobin", "sticky", "cooperative-sticky"]
    assert set(claims(cluster)) == {Claim()}
    await member.leave()


@virtual_test
async def test_a_heartbeat_during_a_join_says_nothing_new() -> None:
    """The coordinator answers heartbeats of the old generation while it waits for the others to join."""
    cluster = DataCluster()
    coordinator = Coordinator(cluster)
    member = await joined(cluster)
    coordinator.heartbeat_errors = [ErrorCode.REBALANCE_IN_PROGRESS] * 9
    coordinator.join_errors = [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS] * 100
    join = spawn(member.join(["t"], counts))
    await cluster.client().wait(4_000)
    coordinator.join_errors = []
    await join.ended.wait()
    join.result()
    assert not member.needs_rejoin
    await member.leave()
