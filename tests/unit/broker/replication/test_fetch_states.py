from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.replication.fetch_states import FetchStates, PartitionFetchState
from odradek.protocol.topic_partition import TopicPartition

A, B, C = (TopicPartition("t", index) for index in range(3))


def states(
    *partitions: TopicPartition, epoch: int = 5, latest: int = 4, end: int = 10, watermark: int = 7
) -> FetchStates:
    made = FetchStates()
    for partition in partitions:
        made.add(partition, leader_epoch=epoch, latest_epoch=latest, end_offset=end, watermark=watermark)
    return made


def state_of(made: FetchStates, partition: TopicPartition = A) -> PartitionFetchState:
    state = made.get(partition)
    assert state is not None
    return state


def names(found: list[tuple[TopicPartition, PartitionFetchState]]) -> list[TopicPartition]:
    return [partition for partition, _ in found]


def ready(made: FetchStates, now_ms: int) -> list[TopicPartition]:
    return [partition for partition in made.take_all() if state_of(made, partition).is_ready(now_ms)]


def test_a_log_with_epochs_begins_at_its_end() -> None:
    state = state_of(states(A))
    assert (state.fetch_offset, state.last_fetched_epoch, state.current_leader_epoch) == (10, 4, 5)
    assert (state.is_truncating, state.lag, state.is_in_sync) == (False, None, False)


def test_a_log_without_epochs_is_cut_to_its_high_watermark_first() -> None:
    made = states(A, latest=-1)
    assert (state_of(made).fetch_offset, state_of(made).is_truncating) == (7, True)
    assert ready(made, 0) == []
    assert names(made.to_truncate(0)) == [A]
    made.truncated(A, 7, -1)
    assert ready(made, 0) == [A]
    assert names(made.to_truncate(0)) == []


def test_a_delayed_partition_is_left_alone_until_the_time_is_up() -> None:
    made = states(A, B)
    made.delay([A], 100, 50)
    assert ready(made, 149) == [B]
    assert made.next_ready_ms(149) == 150
    assert ready(made, 150) == [B, A], "and goes to the end"
    assert made.next_ready_ms(150) is None


def test_a_delay_is_not_lengthened() -> None:
    made = states(A)
    made.delay([A, B], 100, 50)
    made.delay([A], 149, 50)
    assert ready(made, 150) == [A]
    assert B not in made


def test_a_delayed_partition_is_not_cut_either() -> None:
    made = states(A, latest=-1)
    made.delay([A], 0, 10)
    assert names(made.to_truncate(9)) == []
    assert names(made.to_truncate(10)) == [A]


def test_a_partition_with_data_goes_to_the_end() -> None:
    made = states(A, B, C)
    state = made.fetched(A, 12, 5, 15)
    assert (state.fetch_offset, state.last_fetched_epoch, state.lag) == (12, 5, 3)
    assert list(made) == [B, C, A]
    assert made.get(A) is state


def test_a_partition_without_data_gets_its_lag_once() -> None:
    made = states(A, B)
    first = made.fetched(A, 10, -1, 10)
    assert (first.lag, first.last_fetched_epoch, first.is_in_sync) == (0, 4, True)
    assert made.fetched(A, 10, -1, 20) is first


def test_records_without_an_epoch_leave_the_last_one() -> None:
    made = states(A)
    assert made.fetched(A, 12, -1, 12).last_fetched_epoch == 4


def test_data_ends_a_delay() -> None:
    made = states(A)
    made.delay([A], 0, 100)
    made.fetched(A, 11, 5, 11)
    assert ready(made, 0) == [A]


def test_a_truncation_keeps_the_other_fields() -> None:
    made = states(A, B)
    made.fetched(B, 10, -1, 12)
    made.delay([B], 0, 100)
    made.truncated(B, 3, 2)
    state = state_of(made, B)
    assert (state.fetch_offset, state.last_fetched_epoch, state.lag, state.delayed_until_ms) == (3, 2, 2, 100)


def test_after_a_reset_it_goes_on_in_the_same_epoch() -> None:
    made = states(A, B)
    made.delay([A], 0, 100)
    made.reset(A, 3, -1, lag=8)
    state = state_of(made)
    assert (state.fetch_offset, state.last_fetched_epoch, state.current_leader_epoch, state.lag) == (3, -1, 5, 8)
    assert ready(made, 0) == [B, A]


@pytest.mark.parametrize(("lag", "is_in_sync"), [(None, False), (1, False), (0, True), (-1, True)])
def test_in_sync_means_no_lag(lag: int | None, is_in_sync: bool) -> None:
    assert PartitionFetchState(fetch_offset=0, current_leader_epoch=0, lag=lag).is_in_sync is is_in_sync


def test_a_removed_partition_has_no_state() -> None:
    made = states(A)
    assert made.remove(A)
    assert not made.remove(A)
    assert (len(made), made.get(A)) == (0, None)


def test_a_leader_that_refuses_is_left_alone_for_longer_each_time_and_for_a_short_time_again_after_a_new_epoch() -> (
    None
):
    made = states(A)
    now_ms, delays = 0, []
    for _ in range(8):
        made.refused(A, now_ms, 1_000)
        until_ms = state_of(made).delayed_until_ms
        assert until_ms is not None
        delays.append(until_ms - now_ms)
        now_ms = until_ms
    assert delays == [20, 40, 80, 160, 320, 640, 1_000, 1_000]
    made.add(A, leader_epoch=6, latest_epoch=4, end_offset=10, watermark=7)
    made.refused(A, now_ms, 1_000)
    assert state_of(made).delayed_until_ms == now_ms + 20


def test_a_refusal_of_a_removed_partition_changes_nothing() -> None:
    made = states(A)
    made.refused(B, 0, 1_000)
    assert list(made) == [A]


# Changes for the next fetch


def settled(*partitions: TopicPartition) -> FetchStates:
    """All partitions caught up, and no changes left to take."""
    made = states(*partitions)
    for partition in partitions:
        made.fetched(partition, 10, -1, 10)
    made.take_changed(0)
    return made


def test_an_unchanged_partition_is_not_taken() -> None:
    made = settled(A, B, C)
    made.fetched(A, 10, -1, 10)
    assert made.take_changed(0) == []
    made.fetched(B, 11, 4, 11)
    made.touch(A)
    assert made.take_changed(0) == [A, B]
    assert made.take_changed(0) == []


def test_a_lagging_partition_is_taken_each_time() -> None:
    made = settled(A, B)
    made.fetched(B, 11, 4, 15)
    assert [made.take_changed(0) for _ in range(2)] == [[B], [B]]
    made.fetched(B, 15, 4, 15)
    assert [made.take_changed(0) for _ in range(2)] == [[B], []]


def test_the_end_of_a_delay_is_a_change() -> None:
    made = settled(A, B)
    made.delay([A], 0, 10)
    assert [made.take_changed(now_ms) for now_ms in (0, 9, 10, 10)] == [[A], [], [A], []]


def test_removed_and_truncated_partitions_have_changed() -> None:
    made = settled(A, B, C)
    made.remove(C)
    made.truncated(A, 3, 2)
    assert set(made.take_changed(0)) == {A, C}


operations = st.lists(
    st.tuples(
        st.sampled_from(
            ["add", "cut first", "remove", "delay", "refuse", "truncate", "fetch", "fetch nothing", "reset", "wait"]
        ),
        st.sampled_from([A, B, C]),
        st.integers(0, 3),
    ),
    max_size=30,
)


@given(operations)
def test_no_change_is_missed(operations: list[tuple[str, TopicPartition, int]]) -> None:
    made, now_ms = FetchStates(), 0
    before: dict[TopicPartition, tuple[PartitionFetchState | None, bool]] = {}
    for what, partition, number in operations:
        if what == "wait":
            now_ms += 5 * number
        elif what in ("add", "cut first"):
            made.add(partition, leader_epoch=number, latest_epoch=4 if what == "add" else -1, end_offset=9, watermark=7)
        elif what == "remove":
            made.remove(partition)
        elif partition in made:
            if what == "delay":
                made.delay([partition], now_ms, 10)
            elif what == "refuse":
                made.refused(partition, now_ms, 10)
            elif what == "truncate":
                made.truncated(partition, number, 2)
            elif what == "reset":
                made.reset(partition, number, 2, lag=number)
            else:
                offset = state_of(made, partition).fetch_offset + (number if what == "fetch" else 0)
                made.fetched(partition, offset, 4, offset + number % 2)
        if number == 3:
            continue  # several changes between two fetches
        now = {each: (made.get(each), each in made and state_of(made, each).is_ready(now_ms)) for each in (A, B, C)}
        changed = set(made.take_changed(now_ms))
        assert {each for each in now if now[each] != before.get(each, (None, False))} <= changed
        before = now
        truncating = {each for each in made if state_of(made, each).is_truncating}
        assert {each for each, _ in made.to_truncate(now_ms)} == {
            each for each in truncating if not state_of(made, each).is_delayed(now_ms)
        }
        waits = [state_of(made, each).delayed_until_ms or 0 for each in made]
        assert made.next_ready_ms(now_ms) == min((each for each in waits if each > now_ms), default=None)
