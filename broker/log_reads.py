"""Reads for Fetch requests: several partitions within the limits of one answer, now or once there is enough.

Reading is synchronous. What has fewer than `min_bytes` to tell is left in the purgatory of fetches, and what moves a
partition's offsets completes it.

Answers to ReplicaManager.fetchMessages and readFromLog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.delayed_fetch import DelayedFetch
from odradek.broker.replica_results import FetchParams, ReadResult
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.fetch_data import EMPTY_RECORDS, FetchDataInfo

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.broker.fetch_session import PartitionFetch
    from odradek.broker.replica_manager import ReplicaManager


class LogReads:
    """The reads of one broker's replicas."""

    def __init__(self, replica_manager: ReplicaManager) -> None:
        self._replicas = replica_manager

    def fetch(
        self,
        params: FetchParams,
        fetches: Sequence[PartitionFetch],
        respond: Callable[[Sequence[ReadResult]], None],
    ) -> None:
        """Read; `respond` is called now, or once there are `min_bytes` to read or `max_wait_ms` are over."""
        results = self.read(params, fetches, update_follower_state=True)
        readable = sum(result.size_in_bytes for result in results)
        answer_now = (
            params.max_wait_ms <= 0
            or not fetches
            or readable >= params.min_bytes
            or any(result.error != ErrorCode.NONE or result.diverging_epoch is not None for result in results)
        )
        if answer_now:
            respond(results)
            return
        starts = [None if result.fetched is None else result.fetched.fetch_offset_metadata for result in results]
        operation = DelayedFetch(params, fetches, starts, self._replicas, respond)
        keys = [TopicPartition(fetch.topic or "", fetch.partition) for fetch in fetches]
        self._replicas.fetch_purgatory.try_complete_else_watch(operation, keys)

    def read(
        self, params: FetchParams, fetches: Sequence[PartitionFetch], *, update_follower_state: bool
    ) -> list[ReadResult]:
        """Read each partition in order, within `max_bytes` together.

        The first partition that has data returns at least one whole batch whatever the limits say.
        """
        left = params.max_bytes
        min_one_message = not params.hard_max_bytes
        results = []
        for fetch in fetches:
            result = self._read_one(params, fetch, min(fetch.max_bytes, left), min_one_message, update_follower_state)
            size = result.size_in_bytes
            if size > 0:
                min_one_message = False
                left = max(0, left - size)
            results.append(result)
        return results

    def _read_one(
        self,
        params: FetchParams,
        fetch: PartitionFetch,
        max_bytes: int,
        min_one_message: bool,
        update_follower_state: bool,
    ) -> ReadResult:
        if max_bytes < 0:
            return ReadResult(fetch=fetch, error=ErrorCode.UNKNOWN_SERVER_ERROR)
        try:
            partition = self._replicas.partition_of(fetch)
            info = partition.read(
                fetch_offset=fetch.fetch_offset,
                max_bytes=max_bytes,
                isolation=params.isolation,
                min_one_message=min_one_message,
                current_leader_epoch=fetch.current_leader_epoch,
                last_fetched_epoch=fetch.last_fetched_epoch,
                leader_only=params.leader_only,
                follower_id=params.replica_id,
            )
            if update_follower_state and params.is_from_follower and info.fetched is not None:
                partition.in_sync.record_fetch(
                    params.replica_id,
                    info.fetched.fetch_offset_metadata,
                    fetch.log_start_offset,
                    info.log_end_offset,
                    params.replica_epoch,
                )
        except KafkaError as error:
            return ReadResult(fetch=fetch, error=error.code)
        fetched = info.fetched
        if fetched is not None and fetched.first_entry_incomplete and not params.hard_max_bytes:
            # Half a batch is of no use to a client that can be sent a whole one next time.
            fetched = FetchDataInfo(fetched.fetch_offset_metadata, EMPTY_RECORDS)
        return ReadResult(
            fetch=fetch,
            fetched=fetched,
            diverging_epoch=info.diverging_epoch,
            high_watermark=info.high_watermark,
            log_start_offset=info.log_start_offset,
            last_stable_offset=info.last_stable_offset,
        )
