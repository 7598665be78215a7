from __future__ import annotations

import pytest

from odradek.coordinator.group.state.member import MemberMetadata


def member(**changes: object) -> MemberMetadata:
    values: dict[str, object] = {
        "member_id": "m",
        "group_instance_id": None,
        "client_id": "c",
        "client_host": "/h",
        "rebalance_timeout_ms": 1,
        "session_timeout_ms": 1,
        "protocol_type": "consumer",
        "protocols": (("range", b"r"), ("sticky", b"s")),
    }
    return MemberMetadata(**(values | changes))  # type: ignore[arg-type]


def test_votes_for_its_first_candidate() -> None:
    assert member().vote({"sticky", "range"}) == "range"
    assert member().vote({"sticky"}) == "sticky"
    with pytest.raises(KeyError):
        member().vote({"other"})


def test_metadata_is_that_of_the_protocol() -> None:
    assert member().metadata("sticky") == b"s"
    with pytest.raises(KeyError):
        member().metadata("other")


def test_a_member_that_waits_is_alive() -> None:
    one = member()
    assert not one.has_satisfied_heartbeat
    one.awaiting_sync = lambda response: None
    assert one.has_satisfied_heartbeat
    one.take_sync()
    assert not one.has_satisfied_heartbeat
    one.awaiting_join = lambda response: None
    assert one.has_satisfied_heartbeat


def test_a_new_member_that_waits_is_not_alive_for_ever() -> None:
    one = member()
    one.is_new = True
    one.awaiting_join = lambda response: None
    assert not one.has_satisfied_heartbeat
    one.heartbeat_satisfied = True
    assert one.has_satisfied_heartbeat


def test_static_members_have_an_instance_id() -> None:
    assert member(group_instance_id="i").is_static
    assert not member().is_static


def test_a_protocol_listed_twice_is_named_once() -> None:
    assert member(protocols=(("range", b"1"), ("sticky", b"2"), ("range", b"3"))).protocol_names == ["range", "sticky"]
