"""Requests that wait until this broker's metadata shows their effect.

CreateTopics and CreatePartitions wait until every partition has a leader, DeleteTopics until the topic is gone,
ElectLeaders until the metadata names the elected leaders. Each UpdateMetadata that names one of their topics checks
them again.

Kafka: DelayedCreatePartitions, DelayedDeleteTopics, DelayedElectLeader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from typing import TYPE_CHECKING

from odradek.timer.delayed_operation import DelayedOperation
from odradek.timer.purgatory import DelayedOperationPurgatory

if TYPE_CHECKING:
    from odradek.broker.metadata.metadata_cache import MetadataCache
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.timer.system_timer import SystemTimer


class DelayedTopics(DelayedOperation):
    """Completes when `is_done` is true of all topics, or at the time-out; the future gets the remaining topics.

    A change looks only at the topic that changed, so that a request with n topics costs n looks and not n * n. All are
    looked at again when none seems to be missing, because one that was done may have lost its leader, and the missing
    ones when other brokers are alive than before. So it completes at the same changes as if each looked at all topics.
    """

    __slots__ = ("_done", "_is_done", "_metadata_cache", "_missing", "_nodes", "_topics")

    def __init__(
        self,
        timeout_ms: int,
        topics: Collection[str],
        is_done: Callable[[str], bool],
        metadata_cache: MetadataCache,
        done: asyncio.Future[set[str]],
    ) -> None:
        super().__init__(timeout_ms)
        self._topics = topics
        self._is_done = is_done
        self._metadata_cache = metadata_cache
        self._done = done
        self._missing: set[str] = set()
        self._nodes = metadata_cache.snapshot.nodes

    def try_complete(self) -> bool:
        self._nodes = self._metadata_cache.snapshot.nodes
        self._missing = self._unfinished(self._topics)
        return not self._missing and self.force_complete()

    def try_complete_for(self, key: Hashable) -> bool:
        nodes = self._metadata_cache.snapshot.nodes
        if nodes is not self._nodes:
            if nodes.keys() != self._nodes.keys():
                self._missing = self._unfinished(self._missing)
            self._nodes = nodes
        if isinstance(key, str) and key in self._missing and self._is_done(key):
            self._missing.discard(key)
        return not self._missing and self.try_complete()

    def _unfinished(self, topics: Iterable[str]) -> set[str]:
        is_done = self._is_done
        return {topic for topic in topics if not is_done(topic)}

    def on_complete(self) -> None:
        if not self._done.done():  # the waiting task may have been cancelled
            self._done.set_result(self._missing)

    def run(self) -> None:
        if not self.is_completed:
            self._missing = self._unfinished(self._topics)
        super().run()


class TopicWaits:
    """The waits of one broker. Implements the port `TopicsReady`."""

    def __init__(self, metadata_cache: MetadataCache, timer: SystemTimer) -> None:
        self._metadata_cache = metadata_cache
        self.purgatory: DelayedOperationPurgatory[DelayedTopics] = DelayedOperationPurgatory("topic", timer)

    def contains(self, topic: str) -> bool:
        return self._metadata_cache.contains(topic)

    async def wait_for_leaders(self, partitions: Mapping[str, Collection[int]], timeout_ms: int) -> set[str]:
        return await self._wait(partitions, lambda topic: self._has_leaders(topic, partitions[topic]), timeout_ms)

    async def wait_for_elected(self, leaders: Mapping[TopicPartition, int], timeout_ms: int) -> set[TopicPartition]:
        """Wait until the metadata names these leaders; return the partitions without them after `timeout_ms`."""
        by_topic: dict[str, list[TopicPartition]] = {}
        for tp in leaders:
            by_topic.setdefault(tp.topic, []).append(tp)

        def is_elected(tp: TopicPartition) -> bool:
            return self._leader_of(tp) == leaders[tp]

        await self._wait(by_topic, lambda topic: all(is_elected(tp) for tp in by_topic[topic]), timeout_ms)
        return {tp for tp in leaders if not is_elected(tp)}

    def _leader_of(self, topic_partition: TopicPartition) -> int | None:
        state = self._metadata_cache.partition_state(*topic_partition)
        return None if state is None else state.leader

    async def wait_for_deletion(self, topics: Collection[str], timeout_ms: int) -> set[str]:
        return await self._wait(topics, lambda topic: not self._metadata_cache.contains(topic), timeout_ms)

    async def _wait(self, topics: Collection[str], is_done: Callable[[str], bool], timeout_ms: int) -> set[str]:
        done: asyncio.Future[set[str]] = asyncio.get_running_loop().create_future()
        operation = DelayedTopics(timeout_ms, topics, is_done, self._metadata_cache, done)
        if not operation.try_complete():
            self.purgatory.watch(operation, topics)
        return await done

    def _has_leaders(self, topic: str, indexes: Collection[int]) -> bool:
        snapshot = self._metadata_cache.snapshot
        states = snapshot.partitions.get(topic, {})
        return all(index in states and states[index].leader in snapshot.nodes for index in indexes)

    def metadata_changed(self, topics: Iterable[str]) -> None:
        """An UpdateMetadata named these topics."""
        for topic in topics:
            self.purgatory.check_and_complete(topic)
