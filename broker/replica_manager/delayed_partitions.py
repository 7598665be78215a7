"""A request whose partitions complete one by one. It is answered when all have completed or when its time is up.

It waits under the key of each of its partitions, and checks only the one that has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Generic, Protocol, TypeVar

from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.delayed_operation import DelayedOperation


class PartitionResult(Protocol):
    error: ErrorCode


ResultT = TypeVar("ResultT", bound=PartitionResult)


class DelayedPartitions(DelayedOperation, Generic[ResultT]):
    """Results without an error are pending until `settle` returns True. At the time-out they get REQUEST_TIMED_OUT."""

    def __init__(
        self,
        timeout_ms: int,
        results: Mapping[TopicPartition, ResultT],
        respond: Callable[[Mapping[TopicPartition, ResultT]], None],
    ) -> None:
        super().__init__(timeout_ms)
        self._results = results
        self._pending = {tp for tp, result in results.items() if result.error == ErrorCode.NONE}
        self._respond = respond

    def settle(self, topic_partition: TopicPartition, result: ResultT) -> bool:
        """Check one pending partition and update its result; True when it has completed or failed."""
        raise NotImplementedError

    def try_complete(self) -> bool:
        for topic_partition in list(self._pending):
            self._look(topic_partition)
        return not self._pending and self.force_complete()

    def try_complete_for(self, key: Hashable) -> bool:
        """Check only the partition that has changed: a request may have thousands."""
        assert isinstance(key, TopicPartition)
        if key in self._pending:
            self._look(key)
        return not self._pending and self.force_complete()

    def _look(self, topic_partition: TopicPartition) -> None:
        if self.settle(topic_partition, self._results[topic_partition]):
            self._pending.discard(topic_partition)

    def on_complete(self) -> None:
        for topic_partition in self._pending:
            self._results[topic_partition].error = ErrorCode.REQUEST_TIMED_OUT
        self._respond(self._results)
