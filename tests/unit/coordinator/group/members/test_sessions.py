from __future__ import annotations

import pytest

from odradek.coordinator.group.config import NEW_MEMBER_JOIN_TIMEOUT_MS
from odradek.coordinator.group.members.sessions import MemberSessions
from odradek.coordinator.group.state.group_metadata import GroupMetadata
from odradek.coordinator.group.state.group_states import GroupEvent
from odradek.coordinator.group.state.member import MemberMetadata
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer

SESSION_MS = 100


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.timer = SystemTimer(self.clock)
        self.expired: list[str] = []
        self.sessions = MemberSessions(
            self.timer,
            on_expired=lambda group, member: self.expired.append(member.member_id),
            on_pending_expired=lambda group, member_id: self.expired.append(f"pending {member_id}"),
        )
        self.group = GroupMetadata("g", self.clock)
        self.member = MemberMetadata(
            member_id="m",
            group_instance_id=None,
            client_id="c",
            client_host="/h",
            rebalance_timeout_ms=1,
            session_timeout_ms=SESSION_MS,
            protocol_type="consumer",
            protocols=(("range", b""),),
        )
        self.group.add(self.member)

    def wait(self, ms: int) -> None:
        self.clock.advance(ms)
        self.timer.advance()


@pytest.fixture
def world() -> World:
    return World()


def test_a_silent_member_expires(world: World) -> None:
    world.sessions.renew(world.group, world.member)
    world.wait(SESSION_MS - 1)
    assert world.expired == []
    world.wait(1)
    assert world.expired == ["m"]
    assert world.sessions.open_count == 0


def test_each_sign_of_life_starts_the_session_anew(world: World) -> None:
    for _ in range(5):
        world.sessions.renew(world.group, world.member)
        world.wait(SESSION_MS - 1)
    assert world.expired == []
    assert world.sessions.open_count == 1


def test_a_member_with_a_parked_request_does_not_expire(world: World) -> None:
    world.sessions.renew(world.group, world.member)
    world.member.awaiting_sync = lambda response: None
    world.wait(10 * SESSION_MS)
    assert world.expired == []
    assert world.sessions.open_count == 0
    world.member.take_sync()
    world.sessions.renew(world.group, world.member)
    world.wait(SESSION_MS)
    assert world.expired == ["m"]


def test_a_new_member_has_as_long_as_a_join_may_take(world: World) -> None:
    world.member.is_new = True
    world.member.awaiting_join = lambda response: None
    world.sessions.start_joining(world.group, world.member)
    world.wait(NEW_MEMBER_JOIN_TIMEOUT_MS - 1)
    assert world.expired == []
    world.wait(1)
    assert world.expired == ["m"]


def test_the_session_of_a_removed_member_ends(world: World) -> None:
    world.sessions.renew(world.group, world.member)
    world.group.remove("m")
    world.sessions.end(world.group, "m")
    assert world.sessions.open_count == 0
    world.wait(SESSION_MS)
    assert world.expired == []


def test_the_session_of_a_present_member_does_not_end(world: World) -> None:
    world.sessions.renew(world.group, world.member)
    world.sessions.end(world.group, "m")
    assert world.sessions.open_count == 1


def test_sessions_of_a_dead_group_end(world: World) -> None:
    world.sessions.renew(world.group, world.member)
    world.group.add_pending_member("p")
    world.sessions.start_pending(world.group, "p", SESSION_MS)
    world.group.lifecycle.fire(GroupEvent.REMOVED)
    world.wait(SESSION_MS)
    assert world.expired == []
    assert world.sessions.open_count == 0


def test_a_pending_member_expires_or_joins(world: World) -> None:
    world.group.add_pending_member("p")
    world.sessions.start_pending(world.group, "p", SESSION_MS)
    world.wait(SESSION_MS)
    assert world.expired == ["pending p"]
    world.group.add_pending_member("m2")
    world.sessions.start_pending(world.group, "m2", SESSION_MS)
    world.member.member_id = "m2"
    world.group.remove("m2")
    world.sessions.end(world.group, "m2")
    assert world.sessions.open_count == 0


def test_the_same_member_id_in_two_groups_has_two_sessions(world: World) -> None:
    other = GroupMetadata("h", world.clock)
    other.add(world.member)
    world.sessions.renew(world.group, world.member)
    world.sessions.renew(other, world.member)
    assert world.sessions.open_count == 2
