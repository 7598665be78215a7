"""One bucket of a timing wheel: the tasks of one span of time, in the order they came.

A doubly linked ring closed by a root that is no task: `root.next` is the first task, `root.previous` the last, and an
empty ring is a root linked to itself. Hence neither inserting nor removing has a special case, and both are O(1).

Kafka: TimerTaskList.
"""

from __future__ import annotations

from collections.abc import Iterator

from odradek.timer.task import TimerTask


class TimerTaskList:
    """A ring of waiting tasks and their number."""

    __slots__ = ("root", "size")

    def __init__(self) -> None:
        self.size = 0
        root = self.root = TimerTask(0)
        root.previous = root.next = root

    def add(self, task: TimerTask) -> None:
        """Append `task`, which must not wait anywhere else."""
        root = self.root
        last = root.previous
        task.previous = last
        task.next = root
        task.bucket = self
        last.next = root.previous = task
        self.size += 1

    def __iter__(self) -> Iterator[TimerTask]:
        task = self.root.next
        while task is not self.root:
            yield task
            task = task.next
