from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.group.state.group_metadata import GroupMetadata, next_generation
from odradek.coordinator.group.state.group_states import GroupEvent, GroupState
from odradek.coordinator.group.state.member import MemberMetadata
from odradek.protocol.codec.codec import encode
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from odradek.protocol.messages.join_group import JoinGroupResponse
from odradek.protocol.messages.sync_group import SyncGroupResponse
from odradek.timer.clock import ManualClock


def member(
    member_id: str, *protocols: str, instance: str | None = None, topics: tuple[str, ...] = ("t",)
) -> MemberMetadata:
    metadata = b"\0\0" + encode(ConsumerProtocolSubscription(topics=list(topics)), 0)
    return MemberMetadata(
        member_id=member_id,
        group_instance_id=instance,
        client_id="c",
        client_host="/h",
        rebalance_timeout_ms=len(member_id),
        session_timeout_ms=1,
        protocol_type="consumer",
        protocols=tuple((name, metadata) for name in protocols or ("range",)),
    )


@pytest.fixture
def group() -> GroupMetadata:
    return GroupMetadata("g", ManualClock())


def ignore(response: object) -> None:
    pass


def test_the_first_member_leads_and_sets_the_protocol_type(group: GroupMetadata) -> None:
    assert group.protocol_type is None
    group.add(member("a"))
    group.add(member("b"))
    assert group.is_leader("a")
    assert group.is_consumer_group


def test_the_leadership_passes_on(group: GroupMetadata) -> None:
    group.add(member("a"))
    group.add(member("b"))
    group.remove("a")
    assert group.is_leader("b")
    group.remove("b")
    assert group.leader_id is None


def test_removing_nobody_changes_nothing(group: GroupMetadata) -> None:
    group.add(member("a"), ignore)
    group.remove("")
    group.remove("stranger")
    assert group.is_leader("a")
    assert group.awaiting_join_count == 1


def test_a_leader_that_has_not_joined_is_replaced_by_one_that_has(group: GroupMetadata) -> None:
    assert not group.maybe_elect_new_joined_leader()
    group.add(member("a"))
    assert not group.maybe_elect_new_joined_leader()
    group.add(member("b"), ignore)
    assert group.maybe_elect_new_joined_leader()
    assert group.is_leader("b")
    group.update_member(
        group["a"], protocols=group["a"].protocols, rebalance_timeout_ms=1, session_timeout_ms=1, respond=ignore
    )
    assert group.maybe_elect_new_joined_leader()
    assert group.is_leader("b")


def test_everybody_votes_for_a_protocol_all_know(group: GroupMetadata) -> None:
    group.add(member("a", "range", "sticky"))
    group.add(member("b", "sticky", "range", "own"))
    group.add(member("c", "sticky", "range"))
    assert group.select_protocol() == "sticky"
    group.remove("c")
    group.add(member("d", "range"))
    assert group.select_protocol() == "range"


def test_protocols_that_no_member_has_any_more_are_not_kept(group: GroupMetadata) -> None:
    staying, leaving = member("a", "range", "odd"), member("b", "range", "range", "other")
    group.add(staying)
    group.add(leaving)
    for number in range(3):
        group.update_member(
            staying,
            protocols=(("range", b""), (f"new{number}", b"")),
            rebalance_timeout_ms=1,
            session_timeout_ms=1,
            respond=None,
        )
    group.remove("b")
    assert group._protocol_support == {"range": 1, "new2": 1}


def test_between_equals_the_present_protocol_stays(group: GroupMetadata) -> None:
    group.add(member("a", "range", "sticky"))
    group.add(member("b", "sticky", "range"))
    assert group.select_protocol() == "range"
    group.protocol_name = "sticky"
    assert group.select_protocol() == "sticky"


def test_supports_protocols(group: GroupMetadata) -> None:
    assert group.supports_protocols("anything", ["x"])
    assert not group.supports_protocols("", ["x"])
    assert not group.supports_protocols("consumer", [])
    group.add(member("a", "range", "sticky"))
    group.add(member("b", "sticky"))
    group.lifecycle.fire(GroupEvent.REBALANCE)
    assert group.supports_protocols("consumer", ["other", "sticky"])
    assert not group.supports_protocols("consumer", ["range"])
    assert not group.supports_protocols("connect", ["sticky"])


def test_rebalance_timeout_is_the_longest(group: GroupMetadata) -> None:
    assert group.rebalance_timeout_ms == 0
    group.add(member("a"))
    group.add(member("long"))
    assert group.rebalance_timeout_ms == len("long")


def test_replacing_a_static_member_fences_what_waits_and_keeps_the_rest(group: GroupMetadata) -> None:
    joins: list[JoinGroupResponse] = []
    syncs: list[SyncGroupResponse] = []
    group.add(member("s-1", instance="s"), joins.append)
    group["s-1"].awaiting_sync = syncs.append
    group["s-1"].assignment = b"mine"
    group.add_pending_sync_member("s-1")
    replaced, answers = group.replace_static_member("s", "s-1", "s-2")
    assert joins == syncs == [], "the caller answers when it has changed the group"
    for answer in answers:
        answer()
    assert [(answer.error_code, answer.member_id) for answer in joins] == [(ErrorCode.FENCED_INSTANCE_ID, "s-1")]
    assert [answer.error_code for answer in syncs] == [ErrorCode.FENCED_INSTANCE_ID]
    assert group["s-2"] is replaced
    assert replaced.assignment == b"mine"
    assert "s-1" not in group
    assert group.is_leader("s-2")
    assert group.static_member_id("s") == "s-2"
    assert group.pending_sync_members == {"s-1"}
    assert group.awaiting_join_count == 0


def test_an_instance_is_in_the_group_once(group: GroupMetadata) -> None:
    group.add(member("s-1", instance="s"))
    with pytest.raises(ValueError, match="already"):
        group.add(member("s-2", instance="s"))


def test_pending_members_hold_up_the_join_and_become_members(group: GroupMetadata) -> None:
    group.add(member("a"), ignore)
    assert group.has_all_members_joined
    group.add_pending_member("p")
    assert not group.has_all_members_joined
    group.add(member("p"), ignore)
    assert group.has_all_members_joined
    assert not group.is_pending("p")
    with pytest.raises(ValueError, match="already"):
        group.add_pending_member("p")


def test_a_join_is_answered_once(group: GroupMetadata) -> None:
    answers: list[JoinGroupResponse] = []
    group.add(member("a"), answers.append)
    response = JoinGroupResponse()
    assert group.answer_join(group["a"], response)
    assert not group.answer_join(group["a"], response)
    assert answers == [response]
    assert group.awaiting_join_count == 0


def test_a_generation_of_members_and_one_of_nobody(group: GroupMetadata) -> None:
    group.add(member("a", topics=("t",)))
    group.add(member("b", topics=("t", "u")))
    group.lifecycle.fire(GroupEvent.REBALANCE)
    group.init_next_generation()
    assert (group.generation_id, group.protocol_name) == (1, "range")
    assert group.state is GroupState.COMPLETING_REBALANCE
    assert group.subscribed_topics == {"t", "u"}
    group.lifecycle.fire(GroupEvent.REBALANCE)
    group.remove("a")
    group.remove("b")
    group.init_next_generation()
    assert (group.generation_id, group.protocol_name) == (2, None)
    assert group.state is GroupState.EMPTY
    assert group.subscribed_topics == frozenset()
    assert not group.is_subscribed_to("t")


def test_the_topics_of_an_unknown_kind_of_group_are_unknown(group: GroupMetadata) -> None:
    assert group.subscribed_topics is None
    assert group.is_subscribed_to("anything")


def test_the_leader_gets_the_metadata_of_all_members(group: GroupMetadata) -> None:
    group.add(member("a", "range", "sticky"))
    group.add(member("b", "range", instance="i"))
    group.lifecycle.fire(GroupEvent.REBALANCE)
    group.init_next_generation()
    response = group.join_success("a", with_members=True)
    assert [(one.member_id, one.group_instance_id) for one in response.members] == [("a", None), ("b", "i")]
    assert (response.leader, response.protocol_name, response.generation_id) == ("a", "range", 1)
    assert group.join_success("b").members == []


def test_generations_wrap_like_javas_int() -> None:
    assert next_generation(0) == 1
    assert next_generation(2**31 - 2) == 2**31 - 1
    assert next_generation(2**31 - 1) == -(2**31)
    assert next_generation(-1) == 0


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.booleans()), max_size=30))
def test_counts_match_the_members_after_random_changes(steps: list[tuple[str, bool]]) -> None:
    group = GroupMetadata("g", ManualClock())
    for member_id, waits in steps:
        if member_id in group:
            group.remove(member_id)
        else:
            group.add(member(member_id, "range", member_id), ignore if waits else None)
        members = list(group.members)
        assert group.awaiting_join_count == sum(one.is_awaiting_join for one in members)
        assert (group.leader_id in group) if members else group.leader_id is None
        if len(members) > 1:
            assert group.select_protocol() == "range"
