"""The fetch states of the partitions that one fetcher follows, without I/O.

    state         next step                                    ends in
    truncating    the log is truncated to the fetch offset     fetching
    fetching      a fetch names the partition                  fetching, at the next offset or after a truncation
    delayed       none until the delay is over; then as above

A partition whose log has leader epochs begins as fetching, at its log end: the leader's answer tells where the logs
diverge. One without epochs begins as truncating, at its high watermark. A partition that is not fetched any more,
because its leader has changed or its log cannot be written, has no state.

Invariants: a state is replaced, never changed, so that its identity shows after an await whether it is still valid;
partitions that have got data go to the end of the order, so that each gets its turn when the size of answers is
limited.

Changes for the next fetch are collected as they happen (`take_changed`), so that no fetch walks over thousands of
partitions to find a few.

Kafka: PartitionFetchState, AbstractFetcherThread, PartitionStates.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from odradek.protocol.records.layout import NO_PARTITION_LEADER_EPOCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from odradek.protocol.topic_partition import TopicPartition

FIRST_REFUSAL_MS: Final = 20
DOUBLINGS_MAX: Final = 16


@dataclass(slots=True, kw_only=True, eq=False)
class PartitionFetchState:
    """One partition. Never changed: a frozen dataclass takes five times as long to make.

    `last_fetched_epoch` is the epoch of the last record in the log. `lag` is the number of records behind the leader's
    high watermark, None until the first answer. `delayed_until_ms` is a time of the monotonic clock. `refusals` counts
    the answers of a leader that did not have our epoch yet.
    """

    fetch_offset: int
    current_leader_epoch: int
    last_fetched_epoch: int = NO_PARTITION_LEADER_EPOCH
    is_truncating: bool = False
    lag: int | None = None
    delayed_until_ms: int | None = None
    refusals: int = 0

    def is_delayed(self, now_ms: int) -> bool:
        return self.delayed_until_ms is not None and now_ms < self.delayed_until_ms

    def is_ready(self, now_ms: int) -> bool:
        """Whether it may be fetched."""
        until_ms = self.delayed_until_ms
        return not self.is_truncating and (until_ms is None or now_ms >= until_ms)

    @property
    def is_in_sync(self) -> bool:
        return self.lag is not None and self.lag <= 0


class FetchStates:
    """The partitions of one fetcher, in the order in which they are to be fetched."""

    __slots__ = ("_changed", "_delayed", "_lagging", "_next_place", "_places", "_states", "get", "truncating")

    def __init__(self) -> None:
        self._states: dict[TopicPartition, PartitionFetchState] = {}
        self.get: Callable[[TopicPartition], PartitionFetchState | None] = self._states.get
        """The state of a partition; None if it is not fetched. The method of the dict, without a call in between."""
        self._places: dict[TopicPartition, int] = {}
        self._next_place = 0
        self._changed: set[TopicPartition] = set()
        self._delayed: set[TopicPartition] = set()
        self._lagging: set[TopicPartition] = set()
        self.truncating: set[TopicPartition] = set()
        """The partitions in that state, delayed ones among them."""

    def __len__(self) -> int:
        return len(self._states)

    def __iter__(self) -> Iterator[TopicPartition]:
        return iter(self._states)

    def __contains__(self, topic_partition: TopicPartition) -> bool:
        return topic_partition in self._states

    def take_all(self) -> list[TopicPartition]:
        """All partitions, in order; clears the set of changed ones."""
        self._changed.clear()
        return list(self._states)

    def take_changed(self, now_ms: int) -> list[TopicPartition]:
        """The partitions whose request may have changed since the last call: their state was replaced or removed, their
        delay has ended, they lag (the throttle decides on each fetch), or they were touched.
        """
        changed, self._changed = self._changed | self._lagging, set()
        if self._delayed:
            for topic_partition in [each for each in self._delayed if not self._states[each].is_delayed(now_ms)]:
                self._delayed.discard(topic_partition)
                changed.add(topic_partition)
        return sorted(changed, key=self._place) if len(changed) > 1 else list(changed)

    def touch(self, topic_partition: TopicPartition) -> None:
        """Count the partition as changed, although its state has not."""
        self._changed.add(topic_partition)

    def to_truncate(self, now_ms: int) -> list[tuple[TopicPartition, PartitionFetchState]]:
        found = [(each, self._states[each]) for each in sorted(self.truncating, key=self._place)]
        return [(topic_partition, state) for topic_partition, state in found if not state.is_delayed(now_ms)]

    def add(
        self, topic_partition: TopicPartition, *, leader_epoch: int, latest_epoch: int, end_offset: int, watermark: int
    ) -> None:
        """Begin to follow a leader. `latest_epoch`, `end_offset` and the high `watermark` are those of our log."""
        has_epochs = latest_epoch != NO_PARTITION_LEADER_EPOCH
        state = PartitionFetchState(
            fetch_offset=end_offset if has_epochs else watermark,
            current_leader_epoch=leader_epoch,
            last_fetched_epoch=latest_epoch,
            is_truncating=not has_epochs,
        )
        self._to_end(topic_partition, state)

    def remove(self, topic_partition: TopicPartition) -> bool:
        """Stop to fetch the partition; False if it was not fetched."""
        if self._states.pop(topic_partition, None) is None:
            return False
        del self._places[topic_partition]
        self._changed.add(topic_partition)
        for kind in (self._delayed, self._lagging, self.truncating):
            kind.discard(topic_partition)
        return True

    def delay(self, topic_partitions: Iterable[TopicPartition], now_ms: int, delay_ms: int) -> None:
        """Do not fetch these for `delay_ms`. Partitions that are delayed already keep their delay."""
        for topic_partition in list(topic_partitions):
            state = self._states.get(topic_partition)
            if state is not None and not state.is_delayed(now_ms):
                self._to_end(topic_partition, replace(state, delayed_until_ms=now_ms + delay_ms))

    def refused(self, topic_partition: TopicPartition, now_ms: int, delay_ms_max: int) -> None:
        """The leader does not have our leader epoch yet: delay the partition for a short time, which doubles with each
        refusal.
        """
        state = self._states.get(topic_partition)
        if state is not None and not state.is_delayed(now_ms):
            delay_ms = min(FIRST_REFUSAL_MS << min(state.refusals, DOUBLINGS_MAX), delay_ms_max)
            refused = replace(state, delayed_until_ms=now_ms + delay_ms, refusals=state.refusals + 1)
            self._to_end(topic_partition, refused)

    def truncated(self, topic_partition: TopicPartition, offset: int, latest_epoch: int) -> PartitionFetchState:
        """The log was truncated or restarted; fetch from `offset` on. Returns the new state."""
        state = self._states[topic_partition]
        state = replace(state, fetch_offset=offset, last_fetched_epoch=latest_epoch, is_truncating=False)
        self._set(topic_partition, state)
        return state

    def reset(self, topic_partition: TopicPartition, offset: int, latest_epoch: int, lag: int) -> None:
        """The fetch offset was out of the leader's range; fetch from `offset` on."""
        self._to_end(
            topic_partition,
            PartitionFetchState(
                fetch_offset=offset,
                current_leader_epoch=self._states[topic_partition].current_leader_epoch,
                last_fetched_epoch=latest_epoch,
                lag=lag,
            ),
        )

    def fetched(
        self, topic_partition: TopicPartition, next_offset: int, last_epoch: int, high_watermark: int
    ) -> PartitionFetchState:
        """Records up to `next_offset` were appended, the last one of `last_epoch` (-1: nothing was appended).

        Returns the new state. Without an append it changes only once, when the lag becomes known.
        """
        state = self._states[topic_partition]
        if next_offset == state.fetch_offset and state.lag is not None:
            return state
        state = PartitionFetchState(
            fetch_offset=next_offset,
            current_leader_epoch=state.current_leader_epoch,
            last_fetched_epoch=state.last_fetched_epoch if last_epoch == NO_PARTITION_LEADER_EPOCH else last_epoch,
            lag=max(0, high_watermark - next_offset),
        )
        self._to_end(topic_partition, state)
        return state

    def next_ready_ms(self, now_ms: int) -> int | None:
        """The time at which the first delay ends; None if no partition is delayed."""
        times = [self._states[each].delayed_until_ms or 0 for each in self._delayed]
        return min((time for time in times if time > now_ms), default=None)

    def _to_end(self, topic_partition: TopicPartition, state: PartitionFetchState) -> None:
        self._states.pop(topic_partition, None)
        self._places[topic_partition] = self._next_place
        self._next_place += 1
        self._set(topic_partition, state)

    def _set(self, topic_partition: TopicPartition, state: PartitionFetchState) -> None:
        self._states[topic_partition] = state
        self._changed.add(topic_partition)
        for kind, belongs in (
            (self._delayed, state.delayed_until_ms is not None),
            (self._lagging, not state.is_in_sync),
            (self.truncating, state.is_truncating),
        ):
            if belongs:
                kind.add(topic_partition)
            else:
                kind.discard(topic_partition)

    def _place(self, topic_partition: TopicPartition) -> int:
        """Sort key; removed partitions come first."""
        return self._places.get(topic_partition, -1)


class OwnLog:
    """Marks a partition as changed for the next fetch: its log start or its topic id may have changed.

    Implements `Reader`.
    """

    __slots__ = ("_states", "_topic_partition")

    def __init__(self, states: FetchStates, topic_partition: TopicPartition) -> None:
        self._states = states
        self._topic_partition = topic_partition

    def has_news(self) -> None:
        self._states.touch(self._topic_partition)
