from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from odradek.timer.task import TimerTask
from odradek.timer.task_list import TimerTaskList


def assert_is_a_ring(bucket: TimerTaskList, expected: list[TimerTask]) -> None:
    assert list(bucket) == expected
    assert bucket.size == len(expected)
    ring = [bucket.root, *expected]
    for left, right in zip(ring, [*ring[1:], ring[0]], strict=True):
        assert left.next is right
        assert right.previous is left


def test_an_empty_list_is_a_root_linked_to_itself() -> None:
    assert_is_a_ring(TimerTaskList(), [])


def test_tasks_keep_the_order_in_which_they_came() -> None:
    bucket = TimerTaskList()
    tasks = [TimerTask(0) for _ in range(3)]
    for task in tasks:
        bucket.add(task)
        assert task.bucket is bucket
    assert_is_a_ring(bucket, tasks)


@given(st.lists(st.integers(0, 9), max_size=40))
def test_ring_against_a_plain_list(toggles: list[int]) -> None:
    bucket = TimerTaskList()
    tasks = [TimerTask(0) for _ in range(10)]
    model: list[TimerTask] = []
    for index in toggles:
        task = tasks[index]
        if task in model:
            task.cancel()
            model.remove(task)
        else:
            bucket.add(task)
            model.append(task)
        assert_is_a_ring(bucket, model)
