"""A Fetch that waits for `min_bytes` or `max_wait_ms` (Kafka's ``DelayedFetch``).

What is readable is counted from offsets and file positions alone; the log is read once, when the operation completes.
It completes early when a partition is no longer ours to read, when the epoch is fenced, when the fetch offset is on an
older segment than the end (then there is a segment's worth of data), or when the reader's log diverges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from odradek.protocol.errors import KafkaError
from odradek.timer.delayed_operation import DelayedOperation

if TYPE_CHECKING:
    from odradek.broker.fetch_session import PartitionFetch
    from odradek.broker.replica_manager import ReplicaManager
    from odradek.broker.replica_results import FetchParams, ReadResult
    from odradek.storage.offsets import LogOffsetMetadata


class DelayedFetch(DelayedOperation):
    """`starts` holds, for each fetch, where its first read began; None where that is not known."""

    def __init__(
        self,
        params: FetchParams,
        fetches: Sequence[PartitionFetch],
        starts: Sequence[LogOffsetMetadata | None],
        replica_manager: ReplicaManager,
        respond: Callable[[Sequence[ReadResult]], None],
    ) -> None:
        super().__init__(params.max_wait_ms)
        self._params = params
        self._fetches = fetches
        self._starts = starts
        self._replica_manager = replica_manager
        self._respond = respond

    def try_complete(self) -> bool:
        readable = 0
        try:
            for fetch, start in zip(self._fetches, self._starts, strict=True):
                if start is None:
                    continue
                available = self._available(fetch, start)
                if available is None:
                    return self.force_complete()
                readable += available
                if readable >= self._params.min_bytes:
                    return self.force_complete()
        except KafkaError:
            return self.force_complete()  # the answer will say what is wrong
        return False

    def _available(self, fetch: PartitionFetch, start: LogOffsetMetadata) -> int | None:
        """Bytes readable from `start`; None when the fetch has to be answered now."""
        partition = self._replica_manager.partition_of(fetch)
        params = self._params
        end = partition.fetchable_end(params.isolation, fetch.current_leader_epoch, params.leader_only)
        available = 0
        if start.message_offset > end.message_offset:
            return None
        is_held_back = self._replica_manager.reads.is_held_back(partition, params)
        if start.message_offset < end.message_offset and not is_held_back:
            if start.on_older_segment(end) or end.on_older_segment(start):
                return None  # a younger segment, or the files of another directory since the log was moved
            if start.on_same_segment(end):
                available = min(end.position_diff(start), fetch.max_bytes)
        if fetch.last_fetched_epoch >= 0:
            epoch, end_offset = partition.last_offset_for_leader_epoch(
                fetch.current_leader_epoch, fetch.last_fetched_epoch, leader_only=False
            )
            if epoch < fetch.last_fetched_epoch or end_offset < fetch.fetch_offset:
                return None
        return available

    def on_complete(self) -> None:
        self._respond(self._replica_manager.reads.read(self._params, self._fetches, update_follower_state=False))
