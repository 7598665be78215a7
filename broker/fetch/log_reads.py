"""Reads for Fetch requests: several partitions within the limits of one answer, at once or when there is enough data.

A read is synchronous, and `PARTITIONS_A_STEP` are one step. A fetch with fewer than `min_bytes` goes into the purgatory
of fetches; changes of its partitions' offsets complete it.

Kafka: ReplicaManager.fetchMessages, ReplicaManager.readFromLog.
"""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING

from odradek.broker.fetch.cold_reads import ColdReads
from odradek.broker.fetch.delayed_fetch import DelayedFetch
from odradek.broker.fetch.fetch_session import NO_PREFERRED_REPLICA, PARTITIONS_A_STEP
from odradek.broker.fetch.replica_selector import preferred_read_replica
from odradek.broker.fetch.results import EXPECTED_READ_ERRORS, FetchParams, LogReadResult
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.segment.fetch_data import EMPTY_RECORDS, FetchDataInfo
from odradek.timer.sliced_work import run_through

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Iterable, Sequence

    from odradek.broker.fetch.fetch_session import FetchSession, PartitionFetch
    from odradek.broker.fetch.follower_waits import FollowerWaits
    from odradek.broker.fetch.leader_throttle import LeaderThrottle
    from odradek.broker.fetch.replica_selector import ReplicaSelector
    from odradek.broker.metadata.metadata_cache import MetadataCache
    from odradek.broker.partition.hosted_partitions import HostedPartitions
    from odradek.broker.partition.partition import Partition
    from odradek.storage.disk.ports import IoPool
    from odradek.storage.log.unified_log import UnifiedLog
    from odradek.timer.clock import Clock
    from odradek.timer.purgatory import DelayedOperationPurgatory
    from odradek.timer.sliced_work import Steps


class LogReads:
    """The reads of one broker; `purgatory` holds waiting fetches. Without a `selector` consumers are never sent to
    another replica.
    """

    def __init__(
        self,
        partitions: HostedPartitions,
        purgatory: DelayedOperationPurgatory[DelayedFetch],
        metadata_cache: MetadataCache,
        clock: Clock,
        *,
        throttle: LeaderThrottle,
        selector: ReplicaSelector | None,
        io_pool: IoPool,
        follower_waits: FollowerWaits,
    ) -> None:
        self._partitions = partitions
        self._purgatory = purgatory
        self._metadata_cache = metadata_cache
        self._clock = clock
        self.selector = selector
        self.cold_reads = ColdReads(partitions, io_pool, clock)
        self.throttle = throttle
        self._follower_waits = follower_waits

    def fetch(
        self,
        params: FetchParams,
        fetches: Sequence[PartitionFetch],
        respond_later: Callable[[Sequence[LogReadResult]], None],
        session: FetchSession | None = None,
        refused: Collection[PartitionFetch] = (),
    ) -> Generator[None, None, Sequence[LogReadResult] | None]:
        """Read, `PARTITIONS_A_STEP` a step. Returns the results; or None, and `respond_later` is called with them when
        there are `min_bytes` to read or `max_wait_ms` is over.

        With a `session` the fetch also waits for its resting partitions, but not for those in `refused`, which the
        response has an error for. Call `cold_reads` first.
        """
        followed_ms = None
        if params.is_from_follower:
            followed_ms = self._clock.monotonic_ms()
            if session is not None:
                session.last_fetch.ms = followed_ms
        results, readable = yield from self._read(params, fetches, repeat(None), followed_ms)
        stats = self._partitions.topic_stats
        if stats is not None:
            if len(fetches) == 1:
                stats.topics[fetches[0].topic or ""].total_fetch_requests += 1
            else:
                stats.asked_for([fetch.topic or "" for fetch in fetches])
        answer_now = (
            params.max_wait_ms <= 0
            or (not fetches and session is None)
            or readable >= params.min_bytes
            or _cannot_wait(results)
        )
        if answer_now:
            return results
        if followed_ms is not None and followed_ms < self._follower_waits.short_until_ms:
            params = self._follower_waits.limited(params)
        operation = DelayedFetch(params, results, self._partitions, self, respond_later, session, refused)
        if not operation.try_complete():
            self._purgatory.watch(operation, operation.keys)
        return None

    def read_again(
        self,
        params: FetchParams,
        fetches: Sequence[PartitionFetch],
        known: Iterable[LogReadResult | None] = repeat(None),
    ) -> list[LogReadResult]:
        """Read at the end of a wait. `known`: results of the first read that are still valid and have no data."""
        results, _ = run_through(self._read(params, fetches, known, None))
        return results

    def let_rest(self, params: FetchParams, results: Sequence[LogReadResult]) -> Steps:
        """Let partitions rest whose whole state their session has sent. `PARTITIONS_A_STEP` are a step.

        Partitions of a consumer do not rest when it may be sent to another replica, which depends on more than the
        partition. Those of a follower that is not in sync do not rest: each of its fetches may bring it into the ISR.
        """
        if self.selector is not None and not params.is_from_follower:
            return
        for number, result in enumerate(results, 1):
            if number % PARTITIONS_A_STEP == 0:
                yield None
            fetch = result.fetch
            session = fetch.session
            if session is None or result.size_in_bytes or session.is_closed or fetch.is_resting or not result.is_sent:
                continue
            assert result.fetched is not None
            assert fetch.topic is not None
            if not self._metadata_cache.contains_partition(fetch.topic, fetch.partition):
                continue  # deleted since the first read
            partition = self._partitions.hosted(fetch.topic_partition)
            log = None if partition is None else partition.log
            if partition is None or log is None or not _is_at_end(log, fetch, params):
                continue
            replica = None
            if params.is_from_follower:
                replica = partition.in_sync.replicas.get(params.replica_id)
                if replica is None or replica.end_offset != fetch.fetch_offset:
                    continue
                if replica.is_resting or params.replica_id not in partition.in_sync.isr:
                    continue
            fetch.rest(partition.news, result.fetched.fetch_offset_metadata, replica)

    def _read(
        self,
        params: FetchParams,
        fetches: Sequence[PartitionFetch],
        known: Iterable[LogReadResult | None],
        followed_ms: int | None,
    ) -> Generator[None, None, tuple[list[LogReadResult], int]]:
        """Read each partition in order, within `max_bytes` together; returns the results and their bytes.

        The first partition with data returns at least one whole batch, even beyond the limits. `followed_ms`: the time
        at which a follower has asked, for the state of its replicas; None for others, and at the end of a wait.
        """
        left = params.max_bytes
        min_one_message = not params.hard_max_bytes
        results: list[LogReadResult] = []
        readable = 0
        for fetch, known_result in zip(fetches, known, strict=False):
            if results and len(results) % PARTITIONS_A_STEP == 0:
                yield
            if known_result is not None:
                results.append(known_result)
                continue
            result = self._read_one(params, fetch, min(fetch.max_bytes, left), min_one_message, followed_ms)
            size = result.size_in_bytes
            if size > 0:
                min_one_message = False
                left = max(0, left - size)
                readable += size
            elif left < 0:  # the request has a limit below zero, which is an error of its first partition alone
                left = 0
            results.append(result)
        return results, readable

    def _read_one(
        self,
        params: FetchParams,
        fetch: PartitionFetch,
        max_bytes: int,
        min_one_message: bool,
        followed_ms: int | None,
    ) -> LogReadResult:
        try:
            partition = self._partitions.partition_of_topic(fetch.topic_partition, fetch.topic_id)
            if self.selector is not None:
                preferred = self._preferred_read_replica(self.selector, partition, params, fetch.fetch_offset)
                if preferred is not None:
                    return _redirect(partition, fetch, preferred)
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
            if followed_ms is not None and info.fetched is not None:
                partition.in_sync.update_follower_fetch_state(
                    params.replica_id,
                    info.fetched.fetch_offset_metadata,
                    fetch.log_start_offset,
                    info.log_end_offset,
                    followed_ms,
                    params.replica_epoch,
                )
        except KafkaError as error:
            stats = self._partitions.topic_stats
            if stats is not None and error.code not in EXPECTED_READ_ERRORS:
                stats.topics[fetch.topic or ""].failed_fetch_requests += 1
            return LogReadResult(fetch=fetch, error=error.code)
        fetched, size_in_bytes = info.fetched, 0
        if fetched is not None and (records := fetched.records) is not EMPTY_RECORDS:
            # Half a batch is dropped (v3 on): the next fetch returns the whole one.
            is_useless = fetched.first_entry_incomplete and not params.hard_max_bytes
            if is_useless or (params.is_from_follower and self.throttle.holds_back(partition, params.replica_id)):
                fetched = FetchDataInfo(fetched.fetch_offset_metadata, EMPTY_RECORDS)
            else:
                size_in_bytes = len(records) if isinstance(records, memoryview) else records.size_in_bytes
        return LogReadResult(
            fetch,
            ErrorCode.NONE,
            fetched,
            info.diverging_epoch,
            info.high_watermark,
            info.log_start_offset,
            info.last_stable_offset,
            size_in_bytes,
        )

    def is_held_back(self, partition: Partition, params: FetchParams) -> bool:
        """Whether the reader is a follower that the throttle denies records of the partition now."""
        return params.is_from_follower and self.throttle.holds_back(partition, params.replica_id)

    def _preferred_read_replica(
        self, selector: ReplicaSelector, partition: Partition, params: FetchParams, fetch_offset: int
    ) -> int | None:
        client = params.client
        if client is None or params.is_from_follower or not partition.is_leader:
            return None
        assert partition.leader_id is not None
        snapshot = self._metadata_cache.snapshot
        return preferred_read_replica(
            selector,
            client,
            fetch_offset,
            leader=partition.leader_id,
            replicas=partition.in_sync.replicas.values(),
            isr=partition.in_sync.isr,
            node_of=lambda broker_id: snapshot.node(broker_id, client.listener_name),
            now_ms=self._clock.monotonic_ms(),
        )


def _is_at_end(log: UnifiedLog, fetch: PartitionFetch, params: FetchParams) -> bool:
    """Whether nothing has changed since the last answer, and there is no more to read."""
    return (
        log.high_watermark == fetch.sent_high_watermark
        and log.log_start_offset == fetch.sent_log_start_offset
        and log.limit_of(params.isolation) == fetch.fetch_offset
    )


def _redirect(partition: Partition, fetch: PartitionFetch, preferred: int) -> LogReadResult:
    log = partition.local_log_with_epoch(fetch.current_leader_epoch, leader_only=False)
    return LogReadResult(
        fetch=fetch,
        high_watermark=log.high_watermark,
        log_start_offset=log.log_start_offset,
        last_stable_offset=log.last_stable_offset,
        preferred_read_replica=preferred,
    )


def _cannot_wait(results: Iterable[LogReadResult]) -> bool:
    """Whether any of them has to be answered at once."""
    for result in results:  # no generator: most fetches have one partition
        if (
            result.error != ErrorCode.NONE
            or result.diverging_epoch is not None
            or result.preferred_read_replica != NO_PREFERRED_REPLICA
        ):
            return True
    return False
