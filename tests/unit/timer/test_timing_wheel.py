"""Which bucket a task goes to, and where it moves from there."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.timer.task import TimerTask
from odradek.timer.timing_wheel import BucketQueue, TimingWheel

INT64_MAX = (1 << 63) - 1


def task_due_at(expiration_ms: int) -> TimerTask:
    task = TimerTask(0)
    task.expiration_ms = expiration_ms
    return task


def position(wheel: TimingWheel, task: TimerTask) -> tuple[int, int]:
    """(tick of the wheel, place in its ring) of the bucket that holds `task`."""
    (found,) = [
        (level.tick_ms, place)
        for level in wheel.levels()
        for place, bucket in enumerate(level.buckets)
        if bucket is not None and task in list(bucket)
    ]
    return found


@pytest.mark.parametrize(
    ("expiration_ms", "tick_ms", "place", "deadline_ms"),
    [
        (1, 1, 1, 1),
        (2, 1, 2, 2),
        (19, 1, 19, 19),
        (20, 20, 1, 20),
        (39, 20, 1, 20),
        (350, 20, 17, 340),
        (359, 20, 17, 340),
        (399, 20, 19, 380),
        (400, 400, 1, 400),
        (450, 400, 1, 400),
        (7_999, 400, 19, 7_600),
        (8_000, 8_000, 1, 8_000),
        (30_000, 8_000, 3, 24_000),
    ],
)
def test_bucket_of_a_task_added_at_time_zero(expiration_ms: int, tick_ms: int, place: int, deadline_ms: int) -> None:
    queue: BucketQueue = []
    wheel = TimingWheel(1, 20, 0, queue)
    task = task_due_at(expiration_ms)
    assert wheel.add(task) is True
    assert position(wheel, task) == (tick_ms, place)
    assert [deadline for deadline, *_ in queue] == [deadline_ms]


def test_places_are_counted_from_time_zero_not_from_the_current_time() -> None:
    wheel = TimingWheel(1, 20, 1_234, [])
    near, far = task_due_at(1_240), task_due_at(1_300)
    wheel.add(near)
    wheel.add(far)
    assert position(wheel, near) == (1, 1_240 % 20)
    assert position(wheel, far) == (20, 1_300 // 20 % 20)


def test_a_second_task_of_the_same_bucket_takes_no_new_bucket() -> None:
    queue: BucketQueue = []
    wheel = TimingWheel(1, 20, 0, queue)
    assert wheel.add(task_due_at(345)) is True
    assert wheel.add(task_due_at(350)) is False
    assert len(queue) == 1


def test_overflow_wheels_are_created_on_demand() -> None:
    wheel = TimingWheel(1, 20, 0, [])
    wheel.add(task_due_at(19))
    assert [level.tick_ms for level in wheel.levels()] == [1]
    wheel.add(task_due_at(450))
    assert [level.tick_ms for level in wheel.levels()] == [1, 20, 400]


def test_fifteen_levels_reach_past_any_int64() -> None:
    wheel = TimingWheel(1, 20, 0, [])
    task = task_due_at(INT64_MAX)
    wheel.add(task)
    assert len(list(wheel.levels())) == 15
    assert position(wheel, task)[0] == 20**14


def test_a_task_due_at_450_is_demoted_twice() -> None:
    queue: BucketQueue = []
    wheel = TimingWheel(1, 20, 0, queue)
    task = task_due_at(450)
    wheel.add(task)
    path = [position(wheel, task)]
    deadlines = [queue[0][0]]
    while queue[0][3] is not wheel:
        wheel.advance_clock(queue[0][0])
        queue[0][3].demote(limit=10)
        path.append(position(wheel, task))
        deadlines.append(queue[0][0])
    assert path == [(400, 1), (20, 22 % 20), (1, 450 % 20)]
    assert deadlines == [400, 440, 450]


def test_a_task_due_at_the_beginning_of_its_bucket_passes_through_every_level_at_once() -> None:
    queue: BucketQueue = []
    wheel = TimingWheel(1, 20, 0, queue)
    wheel.add(task_due_at(400))
    wheel.advance_clock(400)
    assert [(deadline, tick) for deadline, tick, *_ in queue] == [(400, 400)]
    queue[0][3].demote(limit=10)
    assert [(deadline, tick) for deadline, tick, *_ in queue] == [(400, 20)]
    queue[0][3].demote(limit=10)
    assert [(deadline, tick) for deadline, tick, *_ in queue] == [(400, 1)]


def test_demotion_stops_at_its_limit_and_keeps_the_rest_in_order() -> None:
    queue: BucketQueue = []
    wheel = TimingWheel(1, 20, 0, queue)
    tasks = [task_due_at(25 + index % 2) for index in range(5)]
    for task in tasks:
        wheel.add(task)
    bucket = queue[0][2]
    wheel.advance_clock(20)
    queue[0][3].demote(limit=2)
    assert list(bucket) == tasks[2:]
    assert bucket.size == 3
    assert queue[0][2] is bucket, "still first, to be continued"
    queue[0][3].demote(limit=3)
    assert list(bucket) == []
    assert [(deadline, list(into)) for deadline, _, into, _ in sorted(queue)] == [
        (25, tasks[0::2]),
        (26, tasks[1::2]),
    ]


def test_the_finest_wheel_has_nothing_to_demote_to() -> None:
    wheel = TimingWheel(1, 20, 0, [])
    wheel.add(task_due_at(1))
    with pytest.raises(ValueError, match="nothing to demote to"):
        wheel.demote(limit=1)


def test_a_place_in_the_ring_is_used_again_in_the_next_round() -> None:
    queue: BucketQueue = []
    wheel = TimingWheel(1, 20, 0, queue)
    wheel.add(task_due_at(7))
    wheel.advance_clock(7)
    queue[0][2].root.next.cancel()
    queue[0][3].remove_first()
    assert wheel.buckets == [None] * 20
    later = task_due_at(27)
    assert 27 - wheel.current_time_ms == 20, "one tick too far: the reach is [7, 27)"
    wheel.add(later)
    assert position(wheel, later) == (20, 1)
    later.cancel()
    wheel.advance_clock(8)
    wheel.add(later)
    assert position(wheel, later) == (1, 7)


@given(
    start_ms=st.integers(0, 10**6),
    tick_ms=st.integers(1, 50),
    wheel_size=st.integers(2, 30),
    ticks_ahead=st.lists(st.one_of(st.integers(1, 100), st.integers(1, 10**7)), min_size=1, max_size=20),
)
def test_every_bucket_holds_its_span_and_no_place_holds_two(
    start_ms: int, tick_ms: int, wheel_size: int, ticks_ahead: list[int]
) -> None:
    queue: BucketQueue = []
    wheel = TimingWheel(tick_ms, wheel_size, start_ms, queue)
    for ticks in ticks_ahead:
        wheel.add(task_due_at((start_ms // tick_ms + ticks) * tick_ms))
    for deadline_ms, tick, bucket, level in queue:
        assert level.current_time_ms < deadline_ms < level.end_ms
        assert deadline_ms % tick == 0
        assert level.buckets[deadline_ms // tick % wheel_size] is bucket
        assert all(deadline_ms <= task.expiration_ms < deadline_ms + tick for task in bucket)
    assert sum(bucket.size for _, _, bucket, _ in queue) == len(ticks_ahead)
