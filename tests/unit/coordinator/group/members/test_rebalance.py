from __future__ import annotations

from collections.abc import Callable

import pytest

from odradek.coordinator.group.config import GroupConfig
from odradek.coordinator.group.members.rebalance import Rebalancer
from odradek.coordinator.group.state.group_metadata import GroupMetadata
from odradek.coordinator.group.state.group_states import GroupEvent, GroupState
from odradek.coordinator.group.state.member import MemberMetadata
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.sync_group import SyncGroupResponse
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer

REBALANCE_MS = 1_000
SESSION_MS = 600


class World:
    """A rebalancer whose store can be told what to do."""

    def __init__(self, initial_delay_ms: int = 0) -> None:
        self.clock = ManualClock()
        self.timer = SystemTimer(self.clock)
        self.stored: list[tuple[GroupMetadata, dict[str, bytes], Callable[[ErrorCode], None]]] = []
        config = GroupConfig(group_initial_rebalance_delay_ms=initial_delay_ms)
        self.rebalancer = Rebalancer(config, self.timer, lambda *arguments: self.stored.append(arguments))
        self.group = GroupMetadata("g", self.clock)
        self.joins: list[JoinGroupResponse] = []
        self.syncs: list[tuple[str, SyncGroupResponse]] = []

    def member(self, member_id: str, instance: str | None = None) -> MemberMetadata:
        return MemberMetadata(
            member_id=member_id,
            group_instance_id=instance,
            client_id="c",
            client_host="/h",
            rebalance_timeout_ms=REBALANCE_MS,
            session_timeout_ms=SESSION_MS,
            protocol_type="consumer",
            protocols=(("range", b""),),
        )

    def join(self, member_id: str, instance: str | None = None) -> MemberMetadata:
        member = self.member(member_id, instance)
        self.rebalancer.add_member(self.group, member, self.joins.append, "test")
        self.rebalancer.check_join_barrier(self.group)
        return member

    def sync(self, member_id: str) -> None:
        self.group[member_id].awaiting_sync = lambda response: self.syncs.append((member_id, response))
        self.rebalancer.sync_received(self.group, member_id)

    def wait(self, ms: int) -> None:
        for _ in range(ms):
            self.clock.advance(1)
            self.timer.advance()


@pytest.fixture
def world() -> World:
    return World()


def formed(world: World, *member_ids: str) -> World:
    for member_id in member_ids:
        world.join(member_id)
    world.wait(2)
    assert world.group.state is GroupState.COMPLETING_REBALANCE
    return world


def test_nothing_is_left_waiting_when_the_group_is_released(world: World) -> None:
    formed(world, "a", "b")
    world.group.add_pending_member("p")
    world.rebalancer.sessions.start_pending(world.group, "p", 1_000)
    assert world.rebalancer.open_barrier_count == 1
    world.group.lifecycle.fire(GroupEvent.REMOVED)
    world.rebalancer.release(world.group)
    assert world.rebalancer.open_barrier_count == 0
    assert world.rebalancer.sessions.open_count == 0
    assert world.timer.size == 0


@pytest.mark.parametrize("initial_delay_ms", [0, 3_000])
def test_a_join_barrier_falls_with_its_group(initial_delay_ms: int) -> None:
    world = World(initial_delay_ms)
    world.join("a")
    world.join("b")
    world.group.lifecycle.fire(GroupEvent.REMOVED)
    world.rebalancer.release(world.group)
    assert world.rebalancer.open_barrier_count == 0
    assert world.timer.size == 0
    assert world.group.generation_id == 0


def test_an_assignment_covers_every_member_and_nobody_else(world: World) -> None:
    formed(world, "a", "b")
    world.rebalancer.store_assignment(world.group, "a", {"a": b"A", "stranger": b"Z"})
    ((_, assignment, done),) = world.stored
    assert assignment == {"a": b"A", "b": b""}
    world.sync("b")
    done(ErrorCode.NONE)
    assert world.group.state is GroupState.STABLE
    assert [(member_id, answer.error_code, answer.assignment) for member_id, answer in world.syncs] == [("b", 0, b"")]


def test_a_rebalance_counts_as_completed_when_the_leader_sends_its_assignment(world: World) -> None:
    formed(world, "a")
    assert world.rebalancer.completed_rebalances == 0
    world.rebalancer.store_assignment(world.group, "a", {})
    assert world.rebalancer.completed_rebalances == 1
    world.rebalancer.remove_member(world.group, world.group["a"], "test")
    assert world.group.state is GroupState.EMPTY
    assert world.rebalancer.completed_rebalances == 1


def test_an_assignment_of_an_earlier_generation_is_dropped(world: World) -> None:
    formed(world, "a")
    world.rebalancer.store_assignment(world.group, "a", {"a": b"old"})
    world.rebalancer.prepare_rebalance(world.group, "test")
    world.group.update_member(
        world.group["a"],
        protocols=world.group["a"].protocols,
        rebalance_timeout_ms=REBALANCE_MS,
        session_timeout_ms=SESSION_MS,
        respond=world.joins.append,
    )
    world.rebalancer.check_join_barrier(world.group)
    assert (world.group.state, world.group.generation_id) == (GroupState.COMPLETING_REBALANCE, 2)
    world.stored[0][2](ErrorCode.NONE)
    assert world.group.state is GroupState.COMPLETING_REBALANCE
    assert world.group["a"].assignment == b""


def test_the_group_is_updated_before_the_first_response(world: World) -> None:
    """The leader's sync comes from within the answer to its join, before the follower has been answered."""
    states: list[tuple[str, GroupState, int]] = []

    def follow(response: JoinGroupResponse) -> None:
        states.append((response.member_id, world.group.state, world.group.awaiting_join_count))
        world.sync(response.member_id)
        if world.group.is_leader(response.member_id):
            world.rebalancer.store_assignment(world.group, response.member_id, {"a": b"A", "b": b"B"})
            world.stored[-1][2](ErrorCode.NONE)

    for member_id in ("a", "b"):
        world.rebalancer.add_member(world.group, world.member(member_id), follow, "test")
    world.wait(2)
    assert states == [("a", GroupState.COMPLETING_REBALANCE, 0), ("b", GroupState.STABLE, 0)]
    assert world.group.pending_sync_members == frozenset()
    assert [(member_id, answer.assignment) for member_id, answer in world.syncs] == [("a", b"A")]
    assert world.group["b"].awaiting_sync is not None


def test_a_failed_member_is_answered_and_makes_the_others_rejoin(world: World) -> None:
    formed(world, "a", "b")
    world.sync("b")
    world.rebalancer.remove_member(world.group, world.group["b"], "test")
    assert [(member_id, answer.error_code) for member_id, answer in world.syncs] == [("b", ErrorCode.UNKNOWN_MEMBER_ID)]
    assert world.group.state is GroupState.PREPARING_REBALANCE


def test_static_members_outlive_a_rebalance_they_miss(world: World) -> None:
    world.join("s-1", instance="s")
    world.join("d")
    world.wait(2)
    world.joins.clear()
    world.rebalancer.prepare_rebalance(world.group, "test")
    world.group.update_member(
        world.group["d"],
        protocols=world.group["d"].protocols,
        rebalance_timeout_ms=REBALANCE_MS,
        session_timeout_ms=SESSION_MS,
        respond=world.joins.append,
    )
    for _ in range(2):
        world.wait(REBALANCE_MS // 2)
        world.rebalancer.sessions.renew(world.group, world.group["s-1"])
    assert [(one.member_id, one.leader) for one in world.joins] == [("d", "d")]
    assert set(world.group.member_ids) == {"s-1", "d"}


def test_a_rebalance_timeout_of_zero_does_not_make_the_timer_spin(world: World) -> None:
    static = world.join("s-1", instance="s")
    world.wait(2)
    static.rebalance_timeout_ms = 0
    world.rebalancer.prepare_rebalance(world.group, "test")
    fired = 0
    for _ in range(200):
        world.clock.advance(1)
        fired += world.timer.advance()
    assert world.group.state is GroupState.PREPARING_REBALANCE
    assert fired <= 4
