"""Real clients' assignors, with a group coordinator between them and no broker.

Assignors run in the client that leads. They need the subscription of every member from the coordinator, byte for byte,
and the partitions from metadata. Both come as on the wire: subscriptions through JoinGroup, metadata through the
client's own parser, assignments back through SyncGroup.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from itertools import chain
from types import SimpleNamespace
from typing import Any, Protocol

import pytest
from aiokafka.cluster import ClusterMetadata as AioCluster
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AioRange
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as AioRoundRobin
from aiokafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from aiokafka.protocol.metadata import MetadataResponse_v1
from kafka.cluster import ClusterMetadata as KafkaPythonCluster
from kafka.coordinator.assignors.range import RangePartitionAssignor as KafkaPythonRange
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as KafkaPythonRoundRobin
from kafka.protocol.consumer.metadata import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.protocol.metadata import MetadataResponse as KafkaPythonMetadataResponse

from odradek.coordinator.group.config import GroupConfig
from odradek.coordinator.group.context import GroupRequestContext
from odradek.coordinator.group.coordinator import GroupCoordinator
from odradek.protocol.codec.codec import encode
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import (
    JoinGroupRequest,
    JoinGroupRequestProtocol,
    JoinGroupResponse,
)
from odradek.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment, SyncGroupResponse
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.support.in_process.coordinator_log import FakeTransactionVerifier, InMemoryCoordinatorLog

METADATA_VERSION = 1

Owned = dict[str, list[str]]
"""Member -> partitions as `topic-partition`."""


class ClientLibrary(Protocol):
    """What a client does around its assignor."""

    def subscription(self, topics: list[str]) -> bytes: ...

    def assign(self, metadata: bytes, members: Mapping[str, bytes]) -> dict[str, bytes]: ...

    def partitions(self, assignment: bytes) -> list[str]: ...


class KafkaPython:
    def __init__(self, assignor: Any) -> None:
        self.assignor = assignor

    def subscription(self, topics: list[str]) -> bytes:
        return self.assignor.metadata(topics).encode()

    def assign(self, metadata: bytes, members: Mapping[str, bytes]) -> dict[str, bytes]:
        cluster = KafkaPythonCluster()
        cluster.update_metadata(KafkaPythonMetadataResponse.decode(metadata, version=METADATA_VERSION))
        decoded = [
            SimpleNamespace(
                member_id=member_id, group_instance_id=None, metadata=ConsumerProtocolSubscription.decode(subscription)
            )
            for member_id, subscription in members.items()
        ]
        return {member_id: share.encode() for member_id, share in self.assignor.assign(cluster, decoded).items()}

    def partitions(self, assignment: bytes) -> list[str]:
        return [f"{topic}-{index}" for topic, index in ConsumerProtocolAssignment.decode(assignment).partitions()]


class Aiokafka:
    def __init__(self, assignor: Any) -> None:
        self.assignor = assignor

    def subscription(self, topics: list[str]) -> bytes:
        return self.assignor.metadata(topics).encode()

    def assign(self, metadata: bytes, members: Mapping[str, bytes]) -> dict[str, bytes]:
        cluster = AioCluster()
        cluster.update_metadata(MetadataResponse_v1.decode(io.BytesIO(metadata)))
        decoded = {
            member_id: ConsumerProtocolMemberMetadata.decode(subscription)
            for member_id, subscription in members.items()
        }
        return {member_id: share.encode() for member_id, share in self.assignor.assign(cluster, decoded).items()}

    def partitions(self, assignment: bytes) -> list[str]:
        decoded = ConsumerProtocolMemberAssignment.decode(assignment)
        return [f"{topic}-{index}" for topic, index in decoded.partitions()]


def metadata_of(partition_counts: Mapping[str, int]) -> bytes:
    response = MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host="localhost", port=9092)],
        controller_id=1,
        topics=[
            MetadataResponseTopic(
                name=topic,
                partitions=[
                    MetadataResponsePartition(partition_index=index, leader_id=1, replica_nodes=[1], isr_nodes=[1])
                    for index in range(partition_count)
                ],
            )
            for topic, partition_count in partition_counts.items()
        ],
    )
    return encode(response, METADATA_VERSION)


def owned(
    library: ClientLibrary, name: str, partition_counts: Mapping[str, int], subscriptions: Mapping[str, list[str]]
) -> Owned:
    """Form a group of these members; what each of them owns."""
    clock = ManualClock()
    timer = SystemTimer(clock)
    coordinator = GroupCoordinator(
        config=GroupConfig(group_initial_rebalance_delay_ms=3_000),
        log=InMemoryCoordinatorLog(),
        clock=clock,
        timer=timer,
        new_uuid=lambda: "id",
        verify_transaction=FakeTransactionVerifier(),
    )
    coordinator.startup()
    coordinator.on_elected(coordinator.partition_for("g"), 0)
    joined: dict[str, JoinGroupResponse] = {}
    synced: dict[str, SyncGroupResponse] = {}
    for member, topics in subscriptions.items():
        coordinator.join_group(
            GroupRequestContext(client_id=member, client_host="127.0.0.1", api_version=3),
            JoinGroupRequest(
                group_id="g",
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=[JoinGroupRequestProtocol(name=name, metadata=library.subscription(topics))],
            ),
            lambda response, member=member: joined.__setitem__(member, response),
        )
    clock.advance(3_000)
    timer.advance()
    clock.advance(3_000)
    timer.advance()
    for member, response in joined.items():
        shares = {}
        if response.leader == response.member_id:
            members = {one.member_id: one.metadata for one in response.members}
            shares = library.assign(metadata_of(partition_counts), members)
        coordinator.sync_group(
            GroupRequestContext(client_id=member, client_host="127.0.0.1", api_version=3),
            SyncGroupRequest(
                group_id="g",
                generation_id=response.generation_id,
                member_id=response.member_id,
                assignments=[
                    SyncGroupRequestAssignment(member_id=member_id, assignment=share)
                    for member_id, share in shares.items()
                ],
            ),
            lambda response, member=member: synced.__setitem__(member, response),
        )
    assert {response.error_code for response in synced.values()} == {ErrorCode.NONE}
    return {member: library.partitions(synced[member].assignment) for member in subscriptions}


RANGE = [
    pytest.param(KafkaPython(KafkaPythonRange), id="kafka-python"),
    pytest.param(Aiokafka(AioRange), id="aiokafka"),
]
ROUND_ROBIN = [
    pytest.param(KafkaPython(KafkaPythonRoundRobin), id="kafka-python"),
    pytest.param(Aiokafka(AioRoundRobin), id="aiokafka"),
]


@pytest.mark.parametrize("library", RANGE)
@pytest.mark.parametrize(("partitions", "sizes"), [(10, [4, 3, 3]), (11, [4, 4, 3]), (2, [1, 1, 0])])
def test_range(library: ClientLibrary, partitions: int, sizes: list[int]) -> None:
    shares = owned(library, "range", {"t": partitions}, {"C0": ["t"], "C1": ["t"], "C2": ["t"]})
    assert [len(share) for share in shares.values()] == sizes
    assert list(chain(*shares.values())) == [f"t-{index}" for index in range(partitions)]


@pytest.mark.parametrize("library", RANGE)
def test_range_goes_topic_by_topic(library: ClientLibrary) -> None:
    both = ["t0", "t1"]
    shares = owned(library, "range", {"t0": 3, "t1": 3}, {"C0": both, "C1": both})
    assert shares == {"C0": ["t0-0", "t0-1", "t1-0", "t1-1"], "C1": ["t0-2", "t1-2"]}


@pytest.mark.parametrize("library", ROUND_ROBIN)
def test_round_robin_with_equal_subscriptions(library: ClientLibrary) -> None:
    both = ["t0", "t1"]
    shares = owned(library, "roundrobin", {"t0": 3, "t1": 3}, {"C0": both, "C1": both})
    assert shares == {"C0": ["t0-0", "t0-2", "t1-1"], "C1": ["t0-1", "t1-0", "t1-2"]}


def test_round_robin_with_unequal_subscriptions() -> None:
    # Not with kafka-python: its assignor (3.0.12) ends in a KeyError when it has to pass over a member.
    shares = owned(
        Aiokafka(AioRoundRobin),
        "roundrobin",
        {"t0": 1, "t1": 2, "t2": 3},
        {"C0": ["t0"], "C1": ["t0", "t1"], "C2": ["t0", "t1", "t2"]},
    )
    assert shares == {"C0": ["t0-0"], "C1": ["t1-0"], "C2": ["t1-1", "t2-0", "t2-1", "t2-2"]}
