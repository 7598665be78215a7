"""A consumer group: its members, their current generation, and its offsets.

There are three kinds of members. *Dynamic* members have an id that the coordinator generated. *Static* members carry
a `group.instance.id`; the group maps it to the current member id, and a new client with the same instance id replaces
the old member and fences it (KIP-345). *Pending* members have been given an id and must join again with it (KIP-394);
they are not members yet, but the join barrier waits for them.

Invariants, kept by the methods here and checked by the stateful test:
- `_awaiting_join` counts the members with a parked join;
- `_protocol_support[name]` counts the members that speak a protocol;
- every value of `_static_members` is the id of a member with that instance id;
- the leader, if there is one, is a member; there is one whenever there are members;
- no pending member is a member. An id that has not synced yet is a member's, or that of a static member that was
  replaced: as in Kafka the sync barrier waits for the old id until it expires, and does not remove the new member.

This class only stores; rebalance.py decides when the group's state changes. The offsets are in group_offsets.py.

Kafka: GroupMetadata.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, ValuesView
from functools import partial

from odradek.coordinator.group.state.group_offsets import GroupOffsets
from odradek.coordinator.group.state.group_states import GroupEvent, GroupLifecycle, GroupState
from odradek.coordinator.group.state.member import MemberMetadata, Protocols
from odradek.coordinator.group.state.records import CONSUMER_PROTOCOL_TYPE, subscribed_topics_of
from odradek.coordinator.group.state.responses import join_error, sync_error
from odradek.coordinator.ports import Respond
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from odradek.timer.clock import Clock

_log = logging.getLogger(__name__)


class GroupMetadata:
    """One group, from its first member or offset to its removal."""

    __slots__ = (
        "_awaiting_join",
        "_members",
        "_pending_members",
        "_pending_sync",
        "_protocol_support",
        "_static_members",
        "generation_id",
        "group_id",
        "leader_id",
        "lifecycle",
        "new_member_added",
        "offsets",
        "protocol_name",
        "protocol_type",
        "subscribed_topics",
    )

    def __init__(self, group_id: str, clock: Clock, state: GroupState = GroupState.EMPTY) -> None:
        self.group_id = group_id
        self.lifecycle = GroupLifecycle(clock, state)
        self.protocol_type: str | None = None
        self.protocol_name: str | None = None
        self.generation_id = 0
        self.leader_id: str | None = None
        # Known for consumer groups only, as of the current generation: the topics that any member subscribes to.
        self.subscribed_topics: frozenset[str] | None = None
        # Whether a member joined since the initial join delay was last extended.
        self.new_member_added = False
        self.offsets = GroupOffsets()
        self._members: dict[str, MemberMetadata] = {}
        self._static_members: dict[str, str] = {}
        self._pending_members: set[str] = set()
        self._pending_sync: set[str] = set()
        self._protocol_support: Counter[str] = Counter()
        self._awaiting_join = 0

    # -- queries ---------------------------------------------------------------------------------------------

    @property
    def state(self) -> GroupState:
        return self.lifecycle.state

    @property
    def is_dead(self) -> bool:
        return self.lifecycle.state is GroupState.DEAD

    @property
    def is_consumer_group(self) -> bool:
        return self.protocol_type == CONSUMER_PROTOCOL_TYPE

    @property
    def members(self) -> ValuesView[MemberMetadata]:
        return self._members.values()

    @property
    def member_ids(self) -> Iterable[str]:
        return self._members.keys()

    @property
    def pending_members(self) -> frozenset[str]:
        return frozenset(self._pending_members)

    @property
    def static_member_count(self) -> int:
        return len(self._static_members)

    @property
    def awaiting_join_count(self) -> int:
        return self._awaiting_join

    @property
    def has_all_members_joined(self) -> bool:
        return self._awaiting_join == len(self._members) and not self._pending_members

    @property
    def rebalance_timeout_ms(self) -> int:
        """The longest rebalance timeout of all members."""
        return max((member.rebalance_timeout_ms for member in self._members.values()), default=0)

    def __len__(self) -> int:
        return len(self._members)

    def __bool__(self) -> bool:
        return True

    def __contains__(self, member_id: str) -> bool:
        return member_id in self._members

    def __getitem__(self, member_id: str) -> MemberMetadata:
        return self._members[member_id]

    def get(self, member_id: str) -> MemberMetadata | None:
        return self._members.get(member_id)

    def is_leader(self, member_id: str) -> bool:
        return self.leader_id == member_id

    def is_pending(self, member_id: str) -> bool:
        return member_id in self._pending_members

    def static_member_id(self, group_instance_id: str) -> str | None:
        return self._static_members.get(group_instance_id)

    def not_yet_rejoined(self) -> Iterator[MemberMetadata]:
        return (member for member in self._members.values() if not member.is_awaiting_join)

    def is_subscribed_to(self, topic: str) -> bool:
        """Whether a member subscribes to the topic; True also if the subscriptions are not known."""
        return self.subscribed_topics is None or topic in self.subscribed_topics

    # -- members ---------------------------------------------------------------------------------------------

    def add(self, member: MemberMetadata, respond: Respond[JoinGroupResponse] | None = None) -> None:
        """Add a member and park its join if there is one. The first member sets the protocol type and leads."""
        instance_id = member.group_instance_id
        if instance_id is not None:
            if instance_id in self._static_members:
                raise ValueError(f"static member {instance_id} is already in group {self.group_id}")
            self._static_members[instance_id] = member.member_id
        if not self._members:
            self.protocol_type = member.protocol_type
        if self.leader_id is None:
            self.leader_id = member.member_id
        self._members[member.member_id] = member
        self._protocol_support.update(member.protocol_names)
        member.awaiting_join = respond
        if respond is not None:
            self._awaiting_join += 1
        self._pending_members.discard(member.member_id)

    def remove(self, member_id: str) -> None:
        """Remove a member or pending member. Its parked requests must have been answered. If it led, another leads."""
        member = self._members.pop(member_id, None)
        if member is not None:
            self._forget_protocols(member)
            if member.is_awaiting_join:
                self._awaiting_join -= 1
            if member.group_instance_id is not None:
                self._static_members.pop(member.group_instance_id, None)
        if self.leader_id == member_id:
            self.leader_id = next(iter(self._members), None)
        self._pending_members.discard(member_id)
        self._pending_sync.discard(member_id)

    def _forget_protocols(self, member: MemberMetadata) -> None:
        """Names that no member has any more are not kept: a member may come with others each time."""
        support = self._protocol_support
        for name in member.protocol_names:
            support[name] -= 1
            if not support[name]:
                del support[name]

    def update_member(
        self,
        member: MemberMetadata,
        *,
        protocols: Protocols,
        rebalance_timeout_ms: int,
        session_timeout_ms: int,
        respond: Respond[JoinGroupResponse] | None,
    ) -> None:
        """Apply a rejoin: new metadata, new timeouts, and a join to park (in place of one that was parked before)."""
        self._forget_protocols(member)
        member.protocols = protocols
        self._protocol_support.update(member.protocol_names)
        member.rebalance_timeout_ms = rebalance_timeout_ms
        member.session_timeout_ms = session_timeout_ms
        self._awaiting_join += (respond is not None) - member.is_awaiting_join
        member.awaiting_join = respond

    def replace_static_member(
        self, group_instance_id: str, old_member_id: str, new_member_id: str
    ) -> tuple[MemberMetadata, list[Callable[[], None]]]:
        """Give the static member a new id.

        The second is what answers FENCED_INSTANCE_ID to the requests that are parked under the old id (KIP-345), to be
        called when the group has changed as a whole: an answer may run the next request of its connection at once.
        """
        member = self._members.pop(old_member_id)
        parked_join, parked_sync = self.take_join(member), member.take_sync()
        member.member_id = new_member_id
        self._members[new_member_id] = member
        if self.leader_id == old_member_id:
            self.leader_id = new_member_id
        self._static_members[group_instance_id] = new_member_id
        answers: list[Callable[[], None]] = []
        if parked_join is not None:
            answers.append(partial(parked_join, join_error(old_member_id, ErrorCode.FENCED_INSTANCE_ID)))
        if parked_sync is not None:
            answers.append(partial(parked_sync, sync_error(ErrorCode.FENCED_INSTANCE_ID)))
        return member, answers

    def add_pending_member(self, member_id: str) -> None:
        if member_id in self._members:
            raise ValueError(f"{member_id} is a member of group {self.group_id} already")
        self._pending_members.add(member_id)

    def maybe_elect_new_joined_leader(self) -> bool:
        """Elect a member that has joined if the leader has not joined. False if no member has joined."""
        if self.leader_id is None:
            return False
        leader = self._members[self.leader_id]
        if leader.is_awaiting_join:
            return True
        for member in self._members.values():
            if member.is_awaiting_join:
                self.leader_id = member.member_id
                _log.info("Group leader %r failed to rejoin group %s, %r now leads", leader, self.group_id, member)
                return True
        return False

    # -- parked requests -------------------------------------------------------------------------------------

    def take_join(self, member: MemberMetadata) -> Respond[JoinGroupResponse] | None:
        """Unpark the member's join; the caller must answer it."""
        respond = member.awaiting_join
        if respond is not None:
            member.awaiting_join = None
            self._awaiting_join -= 1
        return respond

    def answer_join(self, member: MemberMetadata, response: JoinGroupResponse) -> bool:
        """Answer the member's parked join; False if it has none. Kafka: GroupMetadata.maybeInvokeJoinCallback."""
        respond = self.take_join(member)
        if respond is None:
            return False
        respond(response)
        return True

    # -- members that have not synced yet ---------------------------------------------------------------------

    @property
    def pending_sync_members(self) -> frozenset[str]:
        return frozenset(self._pending_sync)

    @property
    def has_received_sync_from_all_members(self) -> bool:
        return not self._pending_sync

    def add_pending_sync_member(self, member_id: str) -> None:
        self._pending_sync.add(member_id)

    def remove_pending_sync_member(self, member_id: str) -> None:
        self._pending_sync.discard(member_id)

    def clear_pending_sync_members(self) -> None:
        self._pending_sync.clear()

    # -- protocol and generation -----------------------------------------------------------------------------

    def supports_protocols(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a client with these protocols may join. An empty group takes any protocol; other groups require the
        same type and one protocol that all members support.
        """
        names = list(names)
        if self.state is GroupState.EMPTY:
            return bool(protocol_type) and bool(names)
        count = len(self._members)
        return self.protocol_type == protocol_type and any(self._protocol_support[name] == count for name in names)

    def select_protocol(self) -> str:
        """The protocol with the most votes of those that all members support; each member votes for its first one.

        If two have equally many votes, the current protocol stays, so that the restart of a static member does not
        change it. (In Kafka the order of a hash map decides.)
        """
        member_count = len(self._members)
        candidates = {name for name, count in self._protocol_support.items() if count == member_count}
        votes = Counter(member.vote(candidates) for member in self._members.values())
        return max(votes, key=lambda name: (votes[name], name == self.protocol_name))

    def init_next_generation(self) -> None:
        """Begin the next generation with the members that joined: select the protocol, or become Empty without them."""
        self.generation_id = next_generation(self.generation_id)
        self.protocol_name = self.select_protocol() if self._members else None
        self.subscribed_topics = self.compute_subscribed_topics()
        self.offsets.forget_commit_sources()
        self.clear_pending_sync_members()
        self.lifecycle.fire(GroupEvent.ALL_JOINED if self._members else GroupEvent.NOBODY_JOINED)

    def compute_subscribed_topics(self) -> frozenset[str] | None:
        """Union of the members' subscriptions; None if this is not a consumer group or a subscription is unreadable."""
        if not self.is_consumer_group:
            return None
        if not self._members:
            return frozenset()
        if self.protocol_name is None:
            return None
        topics: set[str] = set()
        for member in self._members.values():
            subscription = subscribed_topics_of(member.metadata(self.protocol_name))
            if subscription is None:
                _log.warning(
                    "Failed to parse the %s subscription of %s in group %s: its topics are unknown",
                    self.protocol_name,
                    member.member_id,
                    self.group_id,
                )
                return None
            topics.update(subscription)
        return frozenset(topics)

    def join_members(self) -> list[JoinGroupResponseMember]:
        """Each member's metadata for the selected protocol, from which the leader computes the assignment.

        Kafka: GroupMetadata.currentMemberMetadata.
        """
        assert self.protocol_name is not None
        return [
            JoinGroupResponseMember(
                member_id=member.member_id,
                group_instance_id=member.group_instance_id,
                metadata=member.metadata(self.protocol_name),
            )
            for member in self._members.values()
        ]

    def join_success(
        self,
        member_id: str,
        *,
        leader_id: str | None = None,
        with_members: bool = False,
        skip_assignment: bool = False,
    ) -> JoinGroupResponse:
        """The response to a successful join, for the current generation."""
        return JoinGroupResponse(
            error_code=ErrorCode.NONE,
            generation_id=self.generation_id,
            protocol_type=self.protocol_type,
            protocol_name=self.protocol_name or "",
            leader=leader_id if leader_id is not None else self.leader_id or "",
            skip_assignment=skip_assignment,
            member_id=member_id,
            members=self.join_members() if with_members else [],
        )

    def __repr__(self) -> str:
        return (
            f"GroupMetadata(groupId={self.group_id}, generation={self.generation_id}, "
            f"protocolType={self.protocol_type}, currentState={self.state.value}, members={list(self._members)})"
        )


def next_generation(generation_id: int) -> int:
    """The next generation: plus one in a signed 32-bit number, which wraps as in Java."""
    return -0x8000_0000 if generation_id == 0x7FFF_FFFF else generation_id + 1
