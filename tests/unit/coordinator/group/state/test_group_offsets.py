from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.group.state.group_offsets import (
    CommittedOffset,
    GroupOffsets,
    OffsetAndMetadata,
    expiry_policy,
)
from odradek.coordinator.group.state.group_states import GroupState
from odradek.protocol.topic_partition import TopicPartition
from tests.support.call_count import counted_calls

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
U0 = TopicPartition("u", 0)


def at(offset: int, commit_ms: int = 0, expire_ms: int | None = None) -> OffsetAndMetadata:
    return OffsetAndMetadata(offset=offset, commit_timestamp_ms=commit_ms, expire_timestamp_ms=expire_ms)


def commit(offsets: GroupOffsets, key: TopicPartition, value: OffsetAndMetadata, record_offset: int) -> None:
    offsets.prepare_commit({key: value})
    offsets.commit_appended({key: value}, record_offset)


def test_a_commit_counts_when_it_is_appended() -> None:
    offsets = GroupOffsets()
    offsets.prepare_commit({T0: at(5)})
    assert offsets.get(T0) is None
    assert offsets.is_unstable(T0)
    assert offsets
    offsets.commit_appended({T0: at(5)}, 0)
    assert offsets.get(T0) == at(5)
    assert not offsets.is_unstable(T0)


def test_a_failed_commit_leaves_what_was() -> None:
    offsets = GroupOffsets()
    commit(offsets, T0, at(5), 0)
    offsets.prepare_commit({T0: at(6)})
    offsets.commit_failed(T0, at(6))
    assert offsets.get(T0) == at(5)
    assert not offsets.is_unstable(T0)


def test_the_later_commit_stays_pending_when_the_earlier_one_is_done() -> None:
    offsets = GroupOffsets()
    offsets.prepare_commit({T0: at(5)})
    offsets.prepare_commit({T0: at(6)})
    offsets.commit_appended({T0: at(5)}, 0)
    assert offsets.get(T0) == at(5)
    assert offsets.is_unstable(T0)
    offsets.commit_appended({T0: at(6)}, 1)
    assert offsets.get(T0) == at(6)
    assert not offsets.is_unstable(T0)


def test_a_commit_is_not_lost_when_a_later_one_fails_first() -> None:
    offsets = GroupOffsets()
    offsets.prepare_commit({T0: at(5)})
    offsets.prepare_commit({T0: at(6)})
    offsets.commit_failed(T0, at(6))
    offsets.commit_appended({T0: at(5)}, 0)
    assert offsets.get(T0) == at(5)


def test_the_place_in_the_log_decides_not_the_order_of_answers() -> None:
    offsets = GroupOffsets()
    offsets.prepare_commit({T0: at(5)})
    offsets.prepare_commit({T0: at(6)})
    offsets.commit_appended({T0: at(6)}, 1)
    offsets.commit_appended({T0: at(5)}, 0)
    assert offsets.get(T0) == at(6)


def test_a_partition_deleted_while_its_commit_is_under_way_stays_deleted() -> None:
    offsets = GroupOffsets()
    offsets.prepare_commit({T0: at(5)})
    assert offsets.remove([T0]) == []
    offsets.commit_appended({T0: at(5)}, 0)
    assert offsets.get(T0) is None
    assert not offsets


def test_only_committed_offsets_need_a_tombstone() -> None:
    offsets = GroupOffsets()
    commit(offsets, T0, at(5), 0)
    offsets.prepare_commit({T1: at(1)})
    assert offsets.remove([T0, T1, U0]) == [T0]
    assert offsets.remove_all() == []


def test_a_transaction_is_pending_until_its_marker() -> None:
    offsets = GroupOffsets()
    offsets.prepare_transactional_commit(7, {T0: at(5)})
    offsets.transactional_commit_appended(7, T0, CommittedOffset(0, at(5)))
    assert offsets.get(T0) is None
    assert offsets.is_unstable(T0)
    assert offsets.producers == [7]
    offsets.complete_transaction(7, committed=True)
    assert offsets.get(T0) == at(5)
    assert offsets.producers == []


def test_an_aborted_transaction_leaves_nothing() -> None:
    offsets = GroupOffsets()
    offsets.prepare_transactional_commit(7, {T0: at(5)})
    offsets.transactional_commit_appended(7, T0, CommittedOffset(0, at(5)))
    offsets.complete_transaction(7, committed=False)
    assert not offsets


def test_an_offset_that_was_never_appended_is_not_part_of_the_transaction() -> None:
    offsets = GroupOffsets()
    offsets.prepare_transactional_commit(7, {T0: at(5), T1: at(6)})
    offsets.transactional_commit_appended(7, T0, CommittedOffset(0, at(5)))
    offsets.complete_transaction(7, committed=True)
    assert list(offsets) == [T0]


def test_a_failed_transactional_append_is_forgotten() -> None:
    offsets = GroupOffsets()
    offsets.prepare_transactional_commit(7, {T0: at(5), T1: at(6)})
    offsets.transactional_commit_failed(7, T0, at(5))
    assert offsets.has_pending_from(7)
    offsets.transactional_commit_failed(7, T1, at(6))
    assert not offsets.has_pending_from(7)
    offsets.transactional_commit_failed(7, T1, at(6))


@pytest.mark.parametrize("answered", [True, False], ids=["refused", "under way at the marker"])
def test_a_late_commit_takes_nothing_out_of_the_transaction(answered: bool) -> None:
    """Of an earlier life of the producer, for one: it has the same id."""
    offsets = GroupOffsets()
    offsets.prepare_transactional_commit(7, {T0: at(5)})
    offsets.transactional_commit_appended(7, T0, CommittedOffset(0, at(5)))
    offsets.prepare_transactional_commit(7, {T0: at(3)})
    if answered:
        offsets.transactional_commit_failed(7, T0, at(3))
    offsets.complete_transaction(7, committed=True)
    assert offsets.get(T0) == at(5)
    assert not offsets.is_unstable(T0)


def test_the_last_commit_of_a_transaction_in_the_log_counts() -> None:
    offsets = GroupOffsets()
    offsets.prepare_transactional_commit(7, {T0: at(5)})
    offsets.prepare_transactional_commit(7, {T0: at(6)})
    offsets.transactional_commit_appended(7, T0, CommittedOffset(1, at(6)))
    offsets.transactional_commit_appended(7, T0, CommittedOffset(0, at(5)))
    offsets.complete_transaction(7, committed=True)
    assert offsets.get(T0) == at(6)


def test_a_commit_appended_behind_the_marker_does_not_count() -> None:
    offsets = GroupOffsets()
    offsets.prepare_transactional_commit(7, {T0: at(5)})
    offsets.complete_transaction(7, committed=True)
    offsets.prepare_transactional_commit(7, {T0: at(6)})
    offsets.transactional_commit_appended(7, T0, CommittedOffset(2, at(5)))
    offsets.complete_transaction(7, committed=True)
    assert not offsets


def test_a_plain_commit_later_in_the_log_wins_over_a_transaction() -> None:
    offsets = GroupOffsets()
    offsets.prepare_transactional_commit(7, {T0: at(5)})
    offsets.transactional_commit_appended(7, T0, CommittedOffset(0, at(5)))
    commit(offsets, T0, at(6), 1)
    offsets.complete_transaction(7, committed=True)
    assert offsets.get(T0) == at(6)


def test_mixing_both_kinds_is_noticed_within_a_generation() -> None:
    offsets = GroupOffsets()
    commit(offsets, T0, at(5), 0)
    assert not offsets.mixes_plain_and_transactional
    offsets.prepare_transactional_commit(7, {T0: at(5)})
    assert offsets.mixes_plain_and_transactional
    offsets.forget_commit_sources()
    assert not offsets.mixes_plain_and_transactional


def expired(
    offsets: GroupOffsets,
    now_ms: int,
    *,
    state: GroupState = GroupState.EMPTY,
    since_ms: int | None = 0,
    protocol_type: str | None = None,
    subscribed_topics: frozenset[str] | None = None,
) -> list[TopicPartition]:
    policy = expiry_policy(
        state=state,
        since_ms=since_ms,
        protocol_type=protocol_type,
        is_consumer_group=protocol_type == "consumer",
        subscribed_topics=subscribed_topics,
    )
    return [] if policy is None else offsets.remove_expired(policy, now_ms, retention_ms=100)


def some_offsets() -> GroupOffsets:
    offsets = GroupOffsets()
    commit(offsets, T0, at(1, commit_ms=0), 0)
    commit(offsets, U0, at(1, commit_ms=50), 1)
    return offsets


def test_partitions_of_deleted_topics_go_with_what_is_under_way_in_them() -> None:
    offsets = GroupOffsets()
    for number, key in enumerate((T0, T1, U0)):
        commit(offsets, key, at(5), number)
    offsets.prepare_commit({T0: at(6), U0: at(6)})
    offsets.prepare_transactional_commit(7, {T0: at(6)})
    assert offsets.remove_topics({"t": {0, 5}, "gone": {0}}) == {"t": {0}}
    assert (offsets.get(T0), offsets.get(T1), offsets.get(U0)) == (None, at(5), at(5))
    assert (offsets.has_offset_or_pending_commit(T0), offsets.is_unstable(U0), len(offsets)) == (False, True, 2)
    assert offsets.remove_topics({"t": {0, 5}}) == {}
    assert {topic: list(indexes) for topic, indexes in offsets.remove_topics({"t": {0, 1}}).items()} == {"t": [1]}
    assert list(offsets) == [U0]


def test_only_offsets_that_may_go_are_looked_at() -> None:
    offsets = GroupOffsets()
    assert offsets.may_lose({"t"}), "a group without any may go itself"
    commit(offsets, T0, at(5), 0)
    assert (offsets.may_lose({"t", "v"}), offsets.may_lose({"u", "v"})) == (True, False)
    offsets.prepare_commit({U0: at(6)})
    assert offsets.may_lose({"u"})
    offsets.commit_failed(U0, at(6))
    assert not offsets.may_lose({"u"})
    offsets.prepare_transactional_commit(7, {U0: at(6)})
    assert offsets.may_lose({"u"})


def test_a_topic_that_is_deleted_whole_is_removed_without_a_call_for_each_partition() -> None:
    calls = []
    for count in (1, 100):
        offsets = GroupOffsets()
        for index in range(count):
            commit(offsets, TopicPartition("t", index), at(5), index)
        with counted_calls() as counted:
            removed = offsets.remove_topics({"t": set(range(100))})
        assert list(removed["t"]) == list(range(count))
        assert not offsets
        calls.append(counted.calls)
    assert calls[0] == calls[1]


def test_simple_groups_expire_from_the_commit() -> None:
    offsets = some_offsets()
    assert expired(offsets, 99) == []
    assert expired(offsets, 100) == [T0]
    assert expired(offsets, 149) == []
    assert expired(offsets, 150) == [U0]


def test_a_group_that_was_left_expires_from_that_moment() -> None:
    offsets = some_offsets()
    assert expired(offsets, 1_099, since_ms=1_000, protocol_type="consumer") == []
    assert expired(offsets, 1_100, since_ms=1_000, protocol_type="consumer") == [T0, U0]


def test_an_empty_group_without_a_time_expires_from_the_commit() -> None:
    offsets = some_offsets()
    assert expired(offsets, 100, since_ms=None, protocol_type="consumer") == [T0]


def test_a_stable_consumer_group_drops_what_it_is_not_subscribed_to() -> None:
    offsets = some_offsets()
    topics = frozenset({"u"})
    assert expired(offsets, 1_000, state=GroupState.STABLE, protocol_type="consumer", subscribed_topics=topics) == [T0]
    assert expired(some_offsets(), 1_000, state=GroupState.STABLE, protocol_type="consumer") == []


def test_a_group_in_use_keeps_everything() -> None:
    for state in (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE, GroupState.DEAD):
        topics: frozenset[str] = frozenset()
        assert expired(some_offsets(), 1_000, state=state, protocol_type="consumer", subscribed_topics=topics) == []
    assert expired(some_offsets(), 1_000, state=GroupState.STABLE, protocol_type="connect") == []


def test_an_explicit_expiry_is_kept_to() -> None:
    offsets = GroupOffsets()
    commit(offsets, T0, at(1, commit_ms=0, expire_ms=500), 0)
    assert expired(offsets, 499) == []
    assert expired(offsets, 500) == [T0]


def test_what_is_being_committed_does_not_expire() -> None:
    offsets = some_offsets()
    offsets.prepare_commit({T0: at(2)})
    assert expired(offsets, 1_000) == [U0]


@given(
    st.lists(st.tuples(st.sampled_from([T0, T1]), st.booleans(), st.sampled_from([1, 2]), st.booleans()), max_size=12),
    st.randoms(use_true_random=False),
)
def test_the_committed_offset_is_the_last_of_the_log_whatever_the_order_of_answers(
    commits: list[tuple[TopicPartition, bool, int, bool]], random: object
) -> None:
    """Against a dumb model: sort by place in the log, take the last that counts."""
    offsets = GroupOffsets()
    answers = []
    expected: dict[TopicPartition, int] = {}
    open_transactions: dict[int, dict[TopicPartition, int]] = {1: {}, 2: {}}
    for record_offset, (key, transactional, producer, succeeds) in enumerate(commits):
        value = at(record_offset)
        if transactional:
            offsets.prepare_transactional_commit(producer, {key: value})
            # Appends of one producer are answered in order, and before its marker is written.
            if succeeds:
                offsets.transactional_commit_appended(producer, key, CommittedOffset(record_offset, value))
                open_transactions[producer][key] = record_offset
            else:
                offsets.transactional_commit_failed(producer, key, value)
        else:
            offsets.prepare_commit({key: value})
            answers.append((key, value, record_offset, succeeds))
    random.shuffle(answers)  # type: ignore[attr-defined]
    for key, value, record_offset, succeeds in answers:
        if succeeds:
            offsets.commit_appended({key: value}, record_offset)
            expected[key] = max(record_offset, expected.get(key, -1))
        else:
            offsets.commit_failed(key, value)
    for producer, pending in open_transactions.items():
        offsets.complete_transaction(producer, committed=producer == 1)
        if producer == 1:
            for key, record_offset in pending.items():
                expected[key] = max(record_offset, expected.get(key, -1))
    assert set(offsets) == set(expected)
    for key, record_offset in expected.items():
        assert offsets.get(key) == at(record_offset)
    assert not any(offsets.is_unstable(key) for key in (T0, T1))
