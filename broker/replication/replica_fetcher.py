"""The loop of a follower: truncate logs, fetch from the leader, append its records.

    answer for a partition               action of the follower
    records                              append them, take over the high watermark and the log start
    a diverging epoch                    truncate the log to the common part
    OFFSET_OUT_OF_RANGE                  leader's end < own end: truncate to it; leader's start > own end: restart there
    FENCED_LEADER_EPOCH                  park the partition until the next LeaderAndIsr
    leader does not have our epoch yet   fetch again soon, with growing delays
    corrupt records                      fetch again after a delay, as after any other error
    records that the log refuses         park the partition

The leader takes the fetch offset as the follower's end offset. So records with `flush.messages` are on the disk before
the next fetch, also before the first one from a new leader; and truncations are on the disk before the next append. A
partition that was removed, given another epoch or truncated before the answer came is skipped; the same is
checked after each slice of records.

OffsetsForLeaderEpoch is not sent: at the inter-broker protocol of 3.9 the answer to a fetch tells a log with epochs
where it diverges, and a log without epochs cannot ask.

Kafka: AbstractFetcherThread, ReplicaFetcherThread, AbstractFetcherThread.processFetchRequest,
AbstractFetcherThread.truncateOnFetchResponse, AbstractFetcherThread.fetchOffsetAndTruncate,
AbstractFetcherThread.handlePartitionsWithErrors.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from odradek.broker.fetch.replication_quota import is_throttled
from odradek.broker.replication.copied_records import PASSING_ERRORS, SLICE_BYTES, append_copied, slices
from odradek.broker.replication.fetch_session_handler import PartitionRequest
from odradek.broker.replication.fetch_states import FetchStates, OwnLog
from odradek.broker.replication.follower_log import follow_watermarks, producers_at, when_cuttable
from odradek.broker.replication.truncation_offset import OffsetTruncationState, truncation_offset
from odradek.controller.loop_turns import in_turns
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.new_tuple import new_tuple
from odradek.storage.disk.disk_space import LogDirFullError
from odradek.storage.offsets import EpochEndOffset, SpecialTimestamp

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from odradek.broker.partition.hosted_partitions import HostedPartitions
    from odradek.broker.partition.partition import Partition
    from odradek.broker.replication.fetch_session_handler import SessionRequest
    from odradek.broker.replication.fetch_states import PartitionFetchState
    from odradek.broker.replication.fetcher_settings import FetcherSettings
    from odradek.broker.replication.remote_leader import RemoteLeaderEndPoint
    from odradek.protocol.messages.fetch import PartitionData
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.log.unified_log import UnifiedLog
    from odradek.storage.manager.log_manager import LogManager
    from odradek.storage.producers.producer_state_manager import ProducerMemory

log = logging.getLogger(__name__)

ANSWERS_AT_ONCE: Final = 100
"""Answers without records that are processed before the event loop gets a turn; it gets one before each with records,
unless that is the first: a record with acks=-1 waits for it."""

# The controller sends LeaderAndIsr to one broker after another. The leader may get it last, some milliseconds later. No
# record is committed until its followers fetch.
_LEADER_HAS_OLD_EPOCH: Final = frozenset(
    {
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)


class ReplicaFetcher:
    """Follows some of the partitions that one broker leads.

    `complete_delayed` is called with partitions whose high watermark has moved, `mark_for_truncation` with partitions
    whose log was truncated, and the offset.
    """

    def __init__(
        self,
        name: str,
        leader: RemoteLeaderEndPoint,
        partitions: HostedPartitions,
        log_manager: LogManager,
        settings: FetcherSettings,
        *,
        complete_delayed: Callable[[TopicPartition], None],
        mark_for_truncation: Callable[[TopicPartition, int], None],
    ) -> None:
        self.states = FetchStates()
        self.name = name
        self.requests = self.received_bytes = 0
        self._leader = leader
        self._partitions = partitions
        self._log_manager = log_manager
        self._complete_delayed = complete_delayed
        self._mark_for_truncation = mark_for_truncation
        self._settings = settings
        self._clock = log_manager.environment.clock
        self._timer = log_manager.environment.timer
        self._own_logs: dict[TopicPartition, OwnLog] = {}
        self._added = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._on_disk: list[asyncio.Future[None]] = []
        """Flushes and truncations that must be on the disk before the next fetch."""

    # The task

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._run(), name=self.name)
        self._task.add_done_callback(self._ended)

    def close(self) -> None:
        """Stop at once, and close the connection."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
        self._leader.close()

    def add(self, partition: Partition) -> None:
        """Follow a partition under its leader epoch. It has a log, and this fetcher does not follow it yet."""
        own = partition.log
        assert own is not None
        self.states.add(
            partition.topic_partition,
            leader_epoch=partition.leader_epoch,
            latest_epoch=own.latest_epoch,
            end_offset=own.log_end_offset,
            watermark=own.high_watermark,
        )
        if own.unflushed_messages >= own.config.flush_messages:
            # Fetched from another leader, or before the process was killed: the flush was not waited for yet.
            self._wait_for_disk(lambda callback: own.when_flushed(own.log_end_offset, callback))
        self._added.set()

    def _ended(self, task: asyncio.Task[None]) -> None:
        """Start the loop again after a bug ended it."""
        error = None if task.cancelled() else task.exception()
        if error is None:
            return
        log.error("[%s] Error in the fetcher", self.name, exc_info=error)
        if self._task is task:
            self._delay(self.states)
            self.start()

    async def _run(self) -> None:
        while True:
            if self.states.truncating:
                await self._cut_to_high_watermarks()
            if self._on_disk:
                await self._disk()
            request = self._request()
            if request is None:
                await self._pause()
            else:
                await self._fetch(request)

    async def _pause(self) -> None:
        """Nothing can be fetched: wait until a partition is added or a delay ends."""
        self._added.clear()
        now_ms = self._clock.monotonic_ms()
        ready_ms = self.states.next_ready_ms(now_ms)
        delay_ms = self._settings.backoff_ms  # for throttled partitions
        if ready_ms is not None:
            delay_ms = min(delay_ms, ready_ms - now_ms)
        wake_up = self._timer.schedule(delay_ms, self._added.set) if self.states else None
        try:
            await self._added.wait()
        finally:
            if wake_up is not None:
                wake_up.cancel()

    def _wait_for_disk(self, register: Callable[[Callable[[OSError | None], None]], None]) -> None:
        """`register` is called with a callback. Its error is ignored: the directory is offline then."""
        on_disk: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._on_disk.append(on_disk)
        register(lambda failure: None if on_disk.done() else on_disk.set_result(None))

    async def _disk(self) -> None:
        while self._on_disk:
            await self._on_disk.pop()

    # Requests

    def _log(self, topic_partition: TopicPartition) -> UnifiedLog | None:
        partition = self._partitions.hosted(topic_partition)
        return None if partition is None else partition.log

    def _request(self) -> SessionRequest | None:
        """The next fetch; None if there is nothing to fetch."""
        session, now_ms = self._leader.session, self._clock.monotonic_ms()
        if session.is_full:
            asked = {each: self._partition_request(each, now_ms) for each in self.states.take_all()}
            request = session.build_full({each: wanted for each, wanted in asked.items() if wanted is not None})
        else:
            changed = self.states.take_changed(now_ms)
            request = session.build_incremental({each: self._partition_request(each, now_ms) for each in changed})
        return request if session.partitions or request.forgotten else None

    def _partition_request(self, topic_partition: TopicPartition, now_ms: int) -> PartitionRequest | None:
        """The request for a partition; None if it is not to be fetched now."""
        state, partition = self.states.get(topic_partition), self._partitions.hosted(topic_partition)
        if state is None:
            self._own_logs.pop(topic_partition, None)
            return None
        if not state.is_ready(now_ms):
            return None
        own = None if partition is None else partition.log
        if partition is None or own is None:
            self._delay([topic_partition])
            return None
        # In-sync partitions are exempt: otherwise they would leave the ISR and join it again and again.
        if not state.is_in_sync and self._is_throttled(own) and self._settings.quota.is_exceeded:
            return None
        watch = self._own_logs.get(topic_partition)
        if watch is None:
            watch = self._own_logs[topic_partition] = OwnLog(self.states, topic_partition)
        partition.news.subscribe(watch)
        return new_tuple(
            PartitionRequest,
            (
                partition.fetch_topic_id,
                state.fetch_offset,
                own.watermarks.log_start_offset,
                state.current_leader_epoch,
                state.last_fetched_epoch,
            ),
        )

    def _is_throttled(self, own: UnifiedLog) -> bool:
        throttled = own.local_log.config.follower_replication_throttled_replicas
        return bool(throttled) and is_throttled(throttled, own.topic_partition.partition, self._settings.broker_id)

    async def _fetch(self, request: SessionRequest) -> None:
        try:
            answers = await self._leader.fetch(request)
        except (OSError, KafkaError) as error:
            log.warning("[%s] Error in response for fetch request: %s", self.name, error)
            self._delay(self.states)
            return
        self.requests += 1
        diverging, out_of_range, advanced = [], [], []
        for count, (topic_partition, data) in enumerate(answers.items()):
            if count and (data.records or count % ANSWERS_AT_ONCE == 0):
                await asyncio.sleep(0)
            has_records = data.error_code == ErrorCode.NONE and data.diverging_epoch.epoch < 0
            # The leader sends a high watermark once in a session. So an answer counts even if the leader epoch has
            # changed meanwhile.
            state = self._asked_state(topic_partition, in_any_epoch=has_records)
            if state is None:
                continue
            if data.error_code == ErrorCode.NONE:
                if data.diverging_epoch.epoch >= 0:
                    diverging.append((topic_partition, data))
                elif await self._append(topic_partition, state, data):
                    advanced.append(topic_partition)
            elif data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                out_of_range.append(topic_partition)
            else:
                self._refused(topic_partition, ErrorCode.for_code(data.error_code))
        for topic_partition, data in diverging:
            await self._cut_diverging(topic_partition, data)
        for topic_partition in out_of_range:
            await self._reset(topic_partition)
        for topic_partition in advanced:
            self._complete_delayed(topic_partition)

    def _asked_state(
        self, topic_partition: TopicPartition, *, in_any_epoch: bool = False
    ) -> PartitionFetchState | None:
        """The state of a partition if it still matches the request; None if it has changed."""
        state = self.states.get(topic_partition)
        asked = self._leader.session.partitions[topic_partition]
        if (
            state is None
            or not state.is_ready(self._clock.monotonic_ms())
            or state.fetch_offset != asked.fetch_offset
            or (state.current_leader_epoch != asked.current_leader_epoch and not in_any_epoch)
        ):
            return None
        return state

    # Errors

    def _delay(self, topic_partitions: Iterable[TopicPartition]) -> None:
        self.states.delay(topic_partitions, self._clock.monotonic_ms(), self._settings.backoff_ms)

    def _park(self, topic_partition: TopicPartition, why: str) -> None:
        log.warning("[%s] Partition %s marked as failed: %s", self.name, topic_partition, why)
        self.states.remove(topic_partition)
        self._partitions.failed_partitions.add(topic_partition)

    def _refused(self, topic_partition: TopicPartition, error: ErrorCode) -> None:
        """The leader answered with an error."""
        if error == ErrorCode.FENCED_LEADER_EPOCH:
            self._park(topic_partition, "its leader has a newer epoch; waiting for the next LeaderAndIsr")
        else:
            log.info("[%s] The leader of %s answered %s", self.name, topic_partition, error.name)
            if error in _LEADER_HAS_OLD_EPOCH:
                self.states.refused(topic_partition, self._clock.monotonic_ms(), self._settings.backoff_ms)
            else:
                self._delay([topic_partition])

    # Appending

    async def _append(self, topic_partition: TopicPartition, state: PartitionFetchState, data: PartitionData) -> bool:
        """Append the fetched records, slice by slice; True when the high watermark has moved."""
        received = b"" if data.records is None else data.records
        assert isinstance(received, bytes | bytearray | memoryview), "regions of files are sent, not received"
        records = memoryview(received)
        parts: deque[memoryview] = deque()
        while self.states.get(topic_partition) is state:
            partition = self._partitions.hosted(topic_partition)
            if partition is None or (own := partition.log) is None:
                return False
            if records and not parts:
                parts.extend(slices(records, min(SLICE_BYTES, own.local_log.config.segment_bytes)))
                parts = parts or deque([records])  # not even one batch: the log raises the error
                records = records[:0]
            try:
                part = parts.popleft() if parts else records
                state = self._append_part(topic_partition, state, own, part, data.high_watermark)
                if not parts:
                    return follow_watermarks(own, data.high_watermark, data.log_start_offset)
            except KafkaError as error:
                self._not_appended(topic_partition, error)
                return False
            await asyncio.sleep(0)
        return False

    def _append_part(
        self,
        topic_partition: TopicPartition,
        state: PartitionFetchState,
        own: UnifiedLog,
        part: memoryview,
        high_watermark: int,
    ) -> PartitionFetchState:
        if state.fetch_offset != own.local_log.log_end_offset:
            raise KafkaError(
                ErrorCode.UNKNOWN_SERVER_ERROR,
                f"Offset mismatch for partition {topic_partition}: fetched offset = {state.fetch_offset}, log end "
                f"offset = {own.log_end_offset}.",
            )
        if not part:
            return self.states.fetched(topic_partition, state.fetch_offset, -1, high_watermark)
        info = append_copied(
            own, part, lambda offset: self._log_manager.truncate_fully_and_start_at(topic_partition, offset)
        )
        self.received_bytes += len(part)
        if self._partitions.topic_stats is not None:
            self._partitions.count_replicated(topic_partition, len(part))
        if self._is_throttled(own):
            self._settings.quota.record(len(part))
        end_offset = own.local_log.log_end_offset
        if info.flush_required:
            self._wait_for_disk(lambda callback: own.when_flushed(end_offset, callback))
        return self.states.fetched(topic_partition, end_offset, info.last_leader_epoch, high_watermark)

    def _not_appended(self, topic_partition: TopicPartition, error: KafkaError) -> None:
        if error.code in PASSING_ERRORS or isinstance(error, LogDirFullError):
            log.error(
                "[%s] Could not append records of %s, fetching them again later: %s",
                self.name,
                topic_partition,
                error.message,
            )
            self._delay([topic_partition])
        else:
            self._park(topic_partition, error.message)

    # Truncation

    async def _cut_to_high_watermarks(self) -> None:
        """Truncate logs without epochs to their high watermarks, with turns of the event loop in between."""
        async for topic_partition, state in in_turns(self.states.to_truncate(self._clock.monotonic_ms())):
            await self._cut(topic_partition, state, OffsetTruncationState(state.fetch_offset, is_complete=True))

    async def _cut_diverging(self, topic_partition: TopicPartition, data: PartitionData) -> None:
        state, own = self._asked_state(topic_partition), self._log(topic_partition)
        if state is None or own is None:
            return
        answer = EpochEndOffset(data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
        truncation = truncation_offset(
            answer,
            initial_offset=state.fetch_offset,
            log_end_offset=own.log_end_offset,
            end_offset_for_epoch=own.end_offset_for_epoch,
        )
        log.info("[%s] Truncating %s to %s since the leader's log ends with %s", self.name, own, truncation, answer)
        # After a complete truncation the watermarks of the answer are taken over: the leader does not send them again.
        # Below the leader's log start they are not: the next fetch is out of range.
        if (
            await self._cut(topic_partition, state, truncation)
            and truncation.is_complete
            and truncation.offset >= data.log_start_offset
            and follow_watermarks(own, data.high_watermark, data.log_start_offset)
        ):
            self._complete_delayed(topic_partition)

    async def _cut(
        self, topic_partition: TopicPartition, state: PartitionFetchState, truncation: OffsetTruncationState
    ) -> bool:
        """Truncate; False if the partition was removed or changed meanwhile, or if the log failed."""
        own, offset = self._log(topic_partition), truncation.offset
        if own is None:
            self._delay([topic_partition])
            return False
        producers: ProducerMemory | None = None
        after: PartitionFetchState | None = None

        def cut() -> bool:
            nonlocal after
            if self.states.get(topic_partition) is not state or self._log(topic_partition) is not own:
                return False
            if offset < own.high_watermark:
                log.warning("[%s] Truncating %s below its high watermark %d", self.name, own, own.high_watermark)
            self._log_manager.truncate_to(
                {topic_partition: offset}, producers=producers and {topic_partition: producers}
            )
            if truncation.is_complete:
                self._mark_for_truncation(topic_partition, offset)
            after = self.states.truncated(topic_partition, offset, own.latest_epoch)
            return True

        try:
            if offset >= own.log_end_offset:
                # No record is removed. Otherwise the first fetch from a new leader would wait for the files with the
                # leader epochs of all partitions that this broker leads now.
                return cut()
            producers = await producers_at(own, offset, self._clock.time_ms())
            was_cut = await when_cuttable(self._log_manager, own, offset, cut)
        except KafkaError as error:
            if self.states.get(topic_partition) is state:
                self._not_cut(topic_partition, error)
            return False
        if was_cut:
            self._wait_for_disk(own.log_dir.sync_queue.when_durable)
        return was_cut and self.states.get(topic_partition) is after

    def _not_cut(self, topic_partition: TopicPartition, error: KafkaError) -> None:
        if isinstance(error, LogDirFullError):
            log.error("[%s] Could not truncate %s, trying again later: %s", self.name, topic_partition, error.message)
            self._delay([topic_partition])
        else:
            self._park(topic_partition, error.message)

    async def _begin_anew(self, topic_partition: TopicPartition, state: PartitionFetchState, start: int) -> bool:
        """Empty the log and let it start at `start`; False if it was removed meanwhile. Raises: KafkaError."""
        own = self._log(topic_partition)
        if own is None:
            return False

        def begin() -> bool:
            if self.states.get(topic_partition) is not state or self._log(topic_partition) is not own:
                return False
            log.warning("[%s] Truncating %s fully and starting at the leader's start offset %d", self.name, own, start)
            self._log_manager.truncate_fully_and_start_at(topic_partition, start)
            return True

        if not await when_cuttable(self._log_manager, own, own.segments.first.base_offset, begin):
            return False
        self._wait_for_disk(own.log_dir.sync_queue.when_durable)
        return self.states.get(topic_partition) is state

    async def _reset(self, topic_partition: TopicPartition) -> None:
        """The fetch offset was out of the leader's range: truncate, or restart at the leader's log start."""
        state = self._asked_state(topic_partition)
        if state is None:
            return
        try:
            end = await self._leader.offset(topic_partition, state.current_leader_epoch, SpecialTimestamp.LATEST)
            own = self._log(topic_partition)
            if own is None or self.states.get(topic_partition) is not state:
                return
            if end < own.log_end_offset:
                # The logs may differ below that offset, too. As in Apache Kafka: only after an unclean election.
                log.warning("[%s] Truncating %s to the leader's end offset %d", self.name, own, end)
                if await self._cut(topic_partition, state, OffsetTruncationState(end, is_complete=True)):
                    self.states.reset(topic_partition, end, own.latest_epoch, lag=0)
                return
            start = await self._leader.offset(topic_partition, state.current_leader_epoch, SpecialTimestamp.EARLIEST)
            own = self._log(topic_partition)
            if own is None or self.states.get(topic_partition) is not state:
                return
            if start > own.log_end_offset and not await self._begin_anew(topic_partition, state, start):
                return
            offset = own.log_end_offset
            self.states.reset(topic_partition, offset, own.latest_epoch, lag=end - offset)
        except KafkaError as error:
            if self.states.get(topic_partition) is state:
                self._refused(topic_partition, error.code)
        except OSError as error:
            log.warning("[%s] Error getting an offset of %s: %s", self.name, topic_partition, error)
            self._delay([topic_partition])
