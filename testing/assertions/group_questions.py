"""Questions about consumer groups: members with their assignments, offsets with their lag, and rebalances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.coordinator.group.state.records import subscribed_topics_of
from odradek.protocol.codec.codec import DecodeError, decode
from odradek.protocol.messages.consumer_protocol import ConsumerProtocolAssignment
from odradek.protocol.topic_partition import TopicPartition
from odradek.testing.node.questions.questions import question
from odradek.testing.observations.group_history import Rebalance
from odradek.testing.observations.waits import Change

if TYPE_CHECKING:
    from odradek.coordinator.group.state.group_metadata import GroupMetadata
    from odradek.coordinator.group.state.member import MemberMetadata
    from odradek.testing.observations.observations import ObservedBroker

MISSING = "Dead"
"""The state of a group that does not exist, as DescribeGroups names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberView:
    """One member of a group."""

    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    topics: tuple[str, ...]
    """That a consumer subscribes to."""
    assignment: Mapping[str, tuple[int, ...]]
    """Topic → partitions, of a consumer in a stable group."""
    encoded_metadata: bytes
    encoded_assignment: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedOffset:
    """The committed offset of a group in one partition."""

    offset: int
    leader_epoch: int
    metadata: str
    committed_ms: int
    lag: int | None
    """High watermark minus offset; None if this broker has no replica of the partition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupView:
    """One group. A group that does not exist has the state `Dead` and nothing else."""

    group_id: str
    state: str
    generation: int = 0
    protocol_type: str | None = None
    protocol: str | None = None
    """The assignor of consumers."""
    leader: str | None = None
    members: tuple[MemberView, ...] = ()
    offsets: Mapping[tuple[str, int], CommittedOffset]
    history: tuple[Rebalance, ...] = ()
    """The rebalances since the test began, oldest first."""

    @property
    def lag(self) -> int:
        """Of all partitions with a committed offset."""
        return sum(offset.lag or 0 for offset in self.offsets.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupAnswer:
    """A group after so many changes of groups."""

    changes: int
    group: GroupView


@question
async def group_view(
    broker: ObservedBroker, *, group_id: str, after: int | None = None, wait_s: float = 0
) -> GroupAnswer:
    """The group now; or, with `after`, when more changes than that have happened, or when the wait is over.

    Raises: BrokerStopped.
    """
    waits = broker.observations.waits

    def look() -> bool | None:
        return True if after is None or waits.count(Change.GROUPS) > after else None

    await waits.until(look, (Change.GROUPS,), wait_s)
    return GroupAnswer(changes=waits.count(Change.GROUPS), group=view_of(broker, group_id))


@question
async def groups(broker: ObservedBroker) -> list[str]:
    """The ids of all groups, sorted."""
    return sorted(group.group_id for group in broker.services.group_coordinator.groups)


def view_of(broker: ObservedBroker, group_id: str) -> GroupView:
    """The group as it is now."""
    history = broker.observations.groups.rebalances(group_id)
    for group in broker.services.group_coordinator.groups:
        if group.group_id == group_id:
            return GroupView(
                group_id=group_id,
                state=group.state.value,
                generation=group.generation_id,
                protocol_type=group.protocol_type,
                protocol=group.protocol_name,
                leader=group.leader_id,
                members=tuple(_member_view(group, member) for member in group.members),
                offsets=_offsets(broker, group),
                history=history,
            )
    return GroupView(group_id=group_id, state=MISSING, offsets={}, history=history)


def _offsets(broker: ObservedBroker, group: GroupMetadata) -> dict[tuple[str, int], CommittedOffset]:
    return {
        (topic_partition.topic, topic_partition.partition): CommittedOffset(
            offset=committed.offset,
            leader_epoch=committed.leader_epoch,
            metadata=committed.metadata,
            committed_ms=committed.commit_timestamp_ms,
            lag=_lag(broker, topic_partition, committed.offset),
        )
        for topic_partition, committed in sorted(group.offsets.items())
    }


def _lag(broker: ObservedBroker, topic_partition: TopicPartition, offset: int) -> int | None:
    hosted = broker.services.replica_manager.hosted(topic_partition)
    return None if hosted is None or hosted.log is None else max(0, hosted.log.high_watermark - offset)


def _member_view(group: GroupMetadata, member: MemberMetadata) -> MemberView:
    metadata = _metadata_of(group, member)
    return MemberView(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host.removeprefix("/"),
        topics=tuple(subscribed_topics_of(metadata) or ()) if group.is_consumer_group else (),
        assignment=assigned_partitions(member.assignment) if group.is_consumer_group else {},
        encoded_metadata=metadata,
        encoded_assignment=member.assignment,
    )


def _metadata_of(group: GroupMetadata, member: MemberMetadata) -> bytes:
    """For the protocol of the group; while it has none yet, for the protocol that the member prefers."""
    if group.protocol_name in member.protocol_names:
        assert group.protocol_name is not None
        return member.metadata(group.protocol_name)
    return member.protocols[0][1] if member.protocols else b""


def assigned_partitions(assignment: bytes) -> dict[str, tuple[int, ...]]:
    """Topic → partitions of a consumer's assignment; empty if it is none. Version 0 is a prefix of all versions."""
    if len(assignment) < 2:
        return {}
    try:
        decoded = decode(ConsumerProtocolAssignment, memoryview(assignment)[2:], 0)
    except DecodeError:
        return {}
    return {each.topic: tuple(each.partitions) for each in decoded.assigned_partitions}
