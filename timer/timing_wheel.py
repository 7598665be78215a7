"""Hierarchical timing wheels: O(1) insertion and removal whatever the number of waiting tasks.

A wheel is a ring of `wheel_size` buckets, each standing for `tick_ms` milliseconds. A task that expires at `t`
belongs to slot `t // tick_ms`, whose place in the ring is `slot % wheel_size`. Seen from its current time (rounded
down to a whole tick) the wheel reaches `tick_ms * wheel_size` ahead, so no two slots within reach share a place. What
lies beyond goes to the overflow wheel, whose tick is the whole reach of this one. With the defaults:

    level   tick     reach      a task due at 2, 19, 350 or 450, added at 0, goes to
    1       1 ms     20 ms      bucket 2 (2), bucket 19 (19)
    2       20 ms    400 ms     bucket 17 (340..359)
    3       400 ms   8 s        bucket 1 (400..799)
    4       8 s      160 s

A bucket falls due at the beginning of its span. The tasks of an overflow bucket are then added anew and land in a
finer wheel (demotion): the task due at 450 leaves level 3 at 400, level 2 (440..459) at 440, and level 1 at 450.

Kafka: TimingWheel. Two differences, and a task fires at the same time with both: buckets exist only while they hold
tasks, and they are queued by deadline in a heap instead of a DelayQueue. The heap holds buckets, not tasks: at most
`wheel_size` for each level, and fifteen levels reach past any 64-bit number of milliseconds.

Invariant: every bucket of a wheel begins after its current time and before its end. Only while `SystemTimer` advances
do those begin at the current time that it is emptying.
"""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heappop, heappush

from odradek.timer.task import TimerTask
from odradek.timer.task_list import TimerTaskList

BucketQueue = list[tuple[int, int, TimerTaskList, "TimingWheel"]]
"""A heap of (deadline, tick, bucket, its wheel): the first two are unique together, so buckets are never compared."""


class TimingWheel:
    """One level, and through `overflow_wheel` the coarser ones above it."""

    __slots__ = (
        "buckets",
        "current_time_ms",
        "end_ms",
        "finer_wheel",
        "interval_ms",
        "overflow_wheel",
        "queue",
        "tick_ms",
        "wheel_size",
    )

    def __init__(
        self, tick_ms: int, wheel_size: int, start_ms: int, queue: BucketQueue, finer_wheel: TimingWheel | None = None
    ) -> None:
        self.tick_ms = tick_ms
        self.wheel_size = wheel_size
        self.interval_ms = tick_ms * wheel_size
        self.current_time_ms = start_ms - start_ms % tick_ms
        self.end_ms = self.current_time_ms + self.interval_ms
        self.buckets: list[TimerTaskList | None] = [None] * wheel_size
        self.queue = queue
        self.finer_wheel = finer_wheel
        self.overflow_wheel: TimingWheel | None = None

    def add(self, task: TimerTask) -> bool:
        """Put `task` into the bucket of its `expiration_ms`, which must lie a tick or more ahead.

        True if that took a new bucket, and so may have brought the next deadline forward.
        """
        expiration_ms = task.expiration_ms
        wheel = self
        while expiration_ms >= wheel.end_ms:
            wheel = wheel.overflow_wheel or wheel._add_overflow_wheel()
        slot = expiration_ms // wheel.tick_ms
        bucket = wheel.buckets[slot % wheel.wheel_size]
        new = bucket is None
        if bucket is None:
            bucket = wheel._add_bucket(slot)
        # TimerTaskList.add, written out: the call would be a fifth of the cost of an insertion.
        root = bucket.root
        last = root.previous
        task.previous = last
        task.next = root
        task.bucket = bucket
        last.next = root.previous = task
        bucket.size += 1
        return new

    def advance_clock(self, time_ms: int) -> None:
        """Move the current time forward; buckets that begin by then must have been emptied."""
        wheel: TimingWheel | None = self
        while wheel is not None and time_ms >= wheel.current_time_ms + wheel.tick_ms:
            wheel.current_time_ms = time_ms - time_ms % wheel.tick_ms
            wheel.end_ms = wheel.current_time_ms + wheel.interval_ms
            wheel = wheel.overflow_wheel

    def demote(self, limit: int) -> None:
        """Move up to `limit` tasks of the bucket that is first in the queue to the finer wheel, and drop it once empty.

        A task due by now goes to the bucket of the finer wheel that begins now: the next to be demoted, or run.
        """
        finer = self.finer_wheel
        if finer is None:
            raise ValueError("the finest wheel has nothing to demote to")
        entry = heappop(self.queue)
        bucket = entry[2]
        tick_ms = finer.tick_ms
        wheel_size = finer.wheel_size
        buckets = finer.buckets
        root = bucket.root
        task = root.next
        for _ in range(limit):
            if task is root:
                break
            following = task.next
            slot = task.expiration_ms // tick_ms
            target = buckets[slot % wheel_size]
            if target is None:
                target = finer._add_bucket(slot)
            target_root = target.root
            last = target_root.previous
            task.previous = last
            task.next = target_root
            task.bucket = target
            last.next = target_root.previous = task
            target.size += 1
            task = following
        root.next = task
        task.previous = root
        if task is root:
            bucket.size = 0
            self._drop(entry[0])
        else:
            bucket.size -= limit
            heappush(self.queue, entry)

    def remove_first(self) -> None:
        """Drop the bucket that is first in the queue, and which is empty."""
        self._drop(heappop(self.queue)[0])

    def levels(self) -> Iterator[TimingWheel]:
        """This wheel and those above it, the finest first."""
        wheel: TimingWheel | None = self
        while wheel is not None:
            yield wheel
            wheel = wheel.overflow_wheel

    def _drop(self, deadline_ms: int) -> None:
        self.buckets[deadline_ms // self.tick_ms % self.wheel_size] = None

    def _add_bucket(self, slot: int) -> TimerTaskList:
        bucket = self.buckets[slot % self.wheel_size] = TimerTaskList()
        heappush(self.queue, (slot * self.tick_ms, self.tick_ms, bucket, self))
        return bucket

    def _add_overflow_wheel(self) -> TimingWheel:
        wheel = TimingWheel(self.interval_ms, self.wheel_size, self.current_time_ms, self.queue, self)
        self.overflow_wheel = wheel
        return wheel
