from __future__ import annotations

from odradek.protocol.api import ApiKey
from tests.support.in_process.observed_broker import ObservedBroker
from tests.support.in_process.observed_groups import (
    commit,
    have_coordinator,
    joined,
)


def test_offsets_and_lag(observed: ObservedBroker) -> None:
    have_coordinator(observed)
    observed.produce("t", b"a", b"b", b"c")
    observed.meanwhile(lambda: commit(observed, 1), lambda: commit(observed, 2))
    group = observed.group("g").wait_for_offset("t", 0, 2)
    committed = group.offsets["t", 0]
    assert (committed.offset, committed.metadata, committed.lag) == (2, "here", 1)
    assert group.lag == 1
    assert observed.group("g").wait_for_offset("t", 0, 1).offsets["t", 0].offset == 2


def test_the_history_of_rebalances(observed: ObservedBroker) -> None:
    member_id = joined(observed)
    observed.call(ApiKey.LEAVE_GROUP, 3, group_id="g", members=[{"member_id": member_id}])
    began, ended = observed.group("g").history
    assert (began.generation, began.members, began.joined, began.left) == (1, (member_id,), (member_id,), ())
    assert began.reason.startswith("adding new member")
    assert (ended.generation, ended.members, ended.joined, ended.left) == (2, (), (), (member_id,))
    assert ended.reason.startswith(f"removing member {member_id} on LeaveGroup")
    assert began.ended_ms is not None
    assert began.began_ms <= began.ended_ms <= ended.began_ms
    assert observed.group("g").state == "Empty"
