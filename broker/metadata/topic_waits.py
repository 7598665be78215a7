"""Requests that wait until this broker's metadata shows their effect.

CreateTopics and CreatePartitions wait until every partition has a leader, DeleteTopics until the topic is gone,
ElectLeaders until the metadata names the elected leaders. Each UpdateMetadata that names one of their topics checks
them again.

Kafka: DelayedCreatePartitions, DelayedDeleteTopics, DelayedElectLeader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from odradek.timer.delayed_operation import DelayedOperation
from odradek.timer.purgatory import DelayedOperationPurgatory

if TYPE_CHECKING:
    from odradek.broker.metadata.metadata_cache import MetadataCache
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.timer.system_timer import SystemTimer


class DelayedTopics(DelayedOperation):
    """Completes when `unfinished` returns no topic, or at the time-out; the future gets the remaining topics."""

    __slots__ = ("_done", "_unfinished")

    def __init__(self, timeout_ms: int, unfinished: Callable[[], set[str]], done: asyncio.Future[set[str]]) -> None:
        super().__init__(timeout_ms)
        self._unfinished = unfinished
        self._done = done

    def try_complete(self) -> bool:
        return not self._unfinished() and self.force_complete()

    def on_complete(self) -> None:
        if not self._done.done():  # the waiting task may have been cancelled
            self._done.set_result(self._unfinished())


class TopicWaits:
    """The waits of one broker. Implements the port `TopicsReady`."""

    def __init__(self, metadata_cache: MetadataCache, timer: SystemTimer) -> None:
        self._metadata_cache = metadata_cache
        self.purgatory: DelayedOperationPurgatory[DelayedTopics] = DelayedOperationPurgatory("topic", timer)

    def contains(self, topic: str) -> bool:
        return self._metadata_cache.contains(topic)

    async def wait_for_leaders(self, partitions: Mapping[str, Collection[int]], timeout_ms: int) -> set[str]:
        return await self._wait(partitions, lambda: self._without_leaders(partitions), timeout_ms)

    async def wait_for_elected(self, leaders: Mapping[TopicPartition, int], timeout_ms: int) -> set[TopicPartition]:
        """Wait until the metadata names these leaders; return the partitions without them after `timeout_ms`."""

        def late() -> set[TopicPartition]:
            return {tp for tp, leader in leaders.items() if self._leader_of(tp) != leader}

        await self._wait({tp.topic for tp in leaders}, lambda: {tp.topic for tp in late()}, timeout_ms)
        return late()

    def _leader_of(self, topic_partition: TopicPartition) -> int | None:
        state = self._metadata_cache.partition_state(*topic_partition)
        return None if state is None else state.leader

    async def wait_for_deletion(self, topics: Collection[str], timeout_ms: int) -> set[str]:
        return await self._wait(
            topics, lambda: {topic for topic in topics if self._metadata_cache.contains(topic)}, timeout_ms
        )

    async def _wait(self, topics: Iterable[str], unfinished: Callable[[], set[str]], timeout_ms: int) -> set[str]:
        if not unfinished():
            return set()
        done: asyncio.Future[set[str]] = asyncio.get_running_loop().create_future()
        self.purgatory.try_complete_else_watch(DelayedTopics(timeout_ms, unfinished, done), topics)
        return await done

    def _without_leaders(self, partitions: Mapping[str, Collection[int]]) -> set[str]:
        snapshot = self._metadata_cache.snapshot
        missing = set()
        for topic, indexes in partitions.items():
            states = snapshot.partitions.get(topic, {})
            if any(index not in states or states[index].leader not in snapshot.nodes for index in indexes):
                missing.add(topic)
        return missing

    def metadata_changed(self, topics: Iterable[str]) -> None:
        """An UpdateMetadata named these topics."""
        for topic in topics:
            self.purgatory.check_and_complete(topic)
