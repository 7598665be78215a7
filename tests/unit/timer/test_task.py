from __future__ import annotations

import weakref

import pytest

from odradek.timer.task import CallbackTask, TimerTask
from odradek.timer.task_list import TimerTaskList
from tests.support.garbage import no_collection


def test_a_task_waits_from_add_to_cancel() -> None:
    bucket, task = TimerTaskList(), TimerTask(5)
    assert not task.is_pending
    bucket.add(task)
    assert task.is_pending
    task.cancel()
    assert not task.is_pending
    assert bucket.size == 0


def test_cancelling_a_task_that_does_not_wait_changes_nothing() -> None:
    bucket, task, other = TimerTaskList(), TimerTask(5), TimerTask(5)
    task.cancel()
    bucket.add(task)
    bucket.add(other)
    task.cancel()
    task.cancel()
    assert list(bucket) == [other]
    assert bucket.size == 1


def test_a_cancelled_task_keeps_no_former_neighbour_alive() -> None:
    bucket = TimerTaskList()

    class Task(TimerTask):
        __slots__ = ("__weakref__",)

    first, second = Task(0), Task(0)
    bucket.add(first)
    bucket.add(second)
    first.cancel()
    second.cancel()
    gone = weakref.ref(second)
    with no_collection():
        del second
        assert gone() is None, "kept alive by a link, or in need of the garbage collector"


def test_run_is_for_subclasses() -> None:
    with pytest.raises(NotImplementedError):
        TimerTask(0).run()


def test_a_callback_task_calls_back() -> None:
    calls: list[str] = []
    CallbackTask(0, lambda: calls.append("called")).run()
    assert calls == ["called"]
