"""Wakes the fetches that wait for a partition: a few at once, the others in slices.

A thousand consumers may wait for one partition, and waking one takes about 60 µs. So that the producer and other
requests do not wait for all of them, the change itself wakes only `AT_ONCE` fetches, followers first (acks=-1 may wait
for them). The others are woken `IN_A_SLICE` at a time, with a turn of the event loop after each slice. A fetch that was
woken in vain is woken again by the next change, after the fetches that were not woken yet.

Kafka: ActionQueue, DelayedActionQueue (run by Apache Kafka after the answer).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from odradek.broker.fetch.delayed_fetch import DelayedFetch
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.timer.purgatory import DelayedOperationPurgatory
    from odradek.timer.system_timer import SystemTimer

AT_ONCE: Final = 8
IN_A_SLICE: Final = 32
"""About 2 ms of consumers that get records."""


class FetchWakeups:
    """Completes the fetches of one purgatory."""

    def __init__(self, purgatory: DelayedOperationPurgatory[DelayedFetch], timer: SystemTimer) -> None:
        self._purgatory = purgatory
        self._timer = timer
        self._pending: dict[TopicPartition, dict[DelayedFetch, None]] = {}

    def wake(self, topic_partition: TopicPartition) -> None:
        """The partition has changed: check every fetch that waits for it."""
        waiting = self._purgatory.waiting_under(topic_partition)
        if waiting:
            self._wake(topic_partition, waiting)

    def wake_some(self, topic_partition: TopicPartition, *, reads_to_log_end: bool) -> None:
        """Either the log end or the high watermark has moved, and nothing else: check the fetches that read to it. A
        thousand consumers may wait for the high watermark while records are appended.
        """
        waiting = self._purgatory.waiting_under(topic_partition)
        concerned = [each for each in waiting if each.reads_to_log_end is reads_to_log_end]
        if concerned:
            self._wake(topic_partition, concerned)

    def _wake(self, topic_partition: TopicPartition, waiting: list[DelayedFetch]) -> None:
        if len(waiting) > AT_ONCE:
            waiting = [each for each in waiting if each.is_from_follower] + [
                each for each in waiting if not each.is_from_follower
            ]
            if not self._pending:
                self._timer.schedule(0, self._go_on)
            self._pending.setdefault(topic_partition, {}).update(dict.fromkeys(waiting[AT_ONCE:]))
        self._purgatory.check(topic_partition, waiting[:AT_ONCE])

    def _go_on(self) -> None:
        topic_partition, pending = next(iter(self._pending.items()))
        operations = [operation for operation, _ in zip(pending, range(IN_A_SLICE), strict=False)]
        for operation in operations:
            del pending[operation]
        if not pending:
            del self._pending[topic_partition]
        if self._pending:
            self._timer.schedule(0, self._go_on)
        self._purgatory.check(topic_partition, operations)
