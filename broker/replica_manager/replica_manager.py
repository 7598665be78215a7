"""The replicas of this broker: appends, reads, and deletion of records; owner of their timers, fetchers and moves.

Appends and reads are synchronous. A request that has to wait (acks=-1, ``min_bytes``, DeleteRecords) goes into a
purgatory keyed by partition. Every change of a partition's offsets checks the requests under its key.

Kafka: ReplicaManager, ReplicaManager.appendRecords, ReplicaManager.appendToLocalLog, ReplicaManager.deleteRecords,
ReplicaManager.handleLogDirFailure, ReplicaManager.completeDelayedFetchOrProduceRequests.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.fetch.fetch_wakeups import FetchWakeups
from odradek.broker.fetch.follower_waits import FollowerWaits
from odradek.broker.fetch.log_reads import LogReads
from odradek.broker.fetch.results import EXPECTED_APPEND_ERRORS, LogAppendResult, LogDeleteRecordsResult
from odradek.broker.partition.high_watermark_checkpoints import HighWatermarkCheckpoints
from odradek.broker.partition.high_watermark_reviews import HighWatermarkReviews
from odradek.broker.partition.hosted_partitions import HostedPartitions
from odradek.broker.partition.isr_expiration import IsrExpiration
from odradek.broker.partition.leadership import PartitionEnvironment
from odradek.broker.partition.partition import Partition
from odradek.broker.replica_manager.controller_requests import ControllerRequests
from odradek.broker.replica_manager.delayed_delete_records import DelayedDeleteRecords
from odradek.broker.replica_manager.delayed_produce import DelayedProduce
from odradek.broker.replica_manager.flush_waits import FlushWaits
from odradek.broker.replica_manager.long_validations import LongValidations
from odradek.broker.replica_manager.replica_moves import ReplicaMoves
from odradek.controller.model.topic_names import INTERNAL_TOPICS
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.append_info import (
    CLIENT,
    NO_KEY,
    AppendOrigin,
    InvalidMagicError,
    InvalidOffsetOrSequenceError,
    LogAppendInfo,
    RecordValidationError,
)
from odradek.storage.validation.validation_cost import LongValidationError
from odradek.storage.validation.validation_job import ValidationJob
from odradek.timer.purgatory import DelayedOperationPurgatory
from odradek.timer.sliced_work import run_through

if TYPE_CHECKING:
    from odradek.broker.fetch.delayed_fetch import DelayedFetch
    from odradek.broker.fetch.leader_throttle import LeaderThrottle
    from odradek.broker.fetch.replica_selector import ReplicaSelector
    from odradek.broker.inter_broker.alter_partition_manager import AlterPartition
    from odradek.broker.metadata.metadata_cache import MetadataCache
    from odradek.broker.meters.broker_topic_stats import BrokerTopicMetrics, BrokerTopicStats
    from odradek.broker.replication.alter_log_dirs import MoveSettings
    from odradek.broker.replication.replica_fetchers import Fetchers
    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.manager.log_manager import LogManager
    from odradek.storage.validation.validation_job import FinishedValidation
    from odradek.timer.clock import Clock
    from odradek.timer.sliced_work import Steps, Wait
    from odradek.timer.system_timer import SystemTimer

log = logging.getLogger(__name__)

VALID_ACKS = (-1, 0, 1)

STEP_MS = 2
"""How long the appends of one step take, without the last of them."""

VALIDATIONS_MAX = 3
"""How often records are validated in a worker process before the event loop does it: small appends of others may move
the log end each time.
"""

# Transactional appends pass the guards of their verification: see transaction_verification.py.
NO_GUARDS: Mapping[TopicPartition, object | None] = {}


class ReplicaManager:
    """The replicas of one broker; `partitions` is the table of hosted partitions."""

    def __init__(
        self,
        *,
        broker_id: int,
        log_manager: LogManager,
        metadata_cache: MetadataCache,
        clock: Clock,
        timer: SystemTimer,
        replica_lag_time_max_ms: int,
        high_watermark_checkpoint_interval_ms: int,
        move_settings: MoveSettings,
        alter_partition: AlterPartition,
        make_fetchers: Callable[[ReplicaManager], Fetchers],
        leader_throttle: LeaderThrottle,
        replica_selector: ReplicaSelector | None,
    ) -> None:
        self.broker_id = broker_id
        self._clock = clock
        self.produce_purgatory: DelayedOperationPurgatory[DelayedProduce] = DelayedOperationPurgatory("Produce", timer)
        self.fetch_purgatory: DelayedOperationPurgatory[DelayedFetch] = DelayedOperationPurgatory("Fetch", timer)
        self._fetch_wakeups = FetchWakeups(self.fetch_purgatory, timer)
        follower_waits = FollowerWaits(self.fetch_purgatory, clock)
        self.delete_records_purgatory: DelayedOperationPurgatory[DelayedDeleteRecords] = DelayedOperationPurgatory(
            "DeleteRecords", timer
        )
        environment = PartitionEnvironment(
            broker_id=broker_id,
            clock=clock,
            log_manager=log_manager,
            metadata_cache=metadata_cache,
            replica_lag_time_max_ms=replica_lag_time_max_ms,
            alter_partition=alter_partition,
            watermarks_moved=partial(self.complete_delayed, only_watermarks=True),
        )
        self.partitions = HostedPartitions(environment)
        self._hosted = self.partitions.by_name
        self.high_watermark_checkpoints = HighWatermarkCheckpoints(
            log_manager, timer, high_watermark_checkpoint_interval_ms
        )
        self.moves = ReplicaMoves(self.partitions, log_manager, move_settings, self.complete_delayed)
        self.fetchers = make_fetchers(self)
        self.controller_requests = ControllerRequests(
            self.partitions,
            log_manager,
            metadata_cache,
            broker_id=broker_id,
            fetchers=self.fetchers,
            moves=self.moves,
            complete_delayed=self.complete_delayed,
            leadership_began=follower_waits.leadership_began,
            handle_log_dir_failure=self.handle_log_dir_failure,
        )
        self.reads = LogReads(
            self.partitions,
            self.fetch_purgatory,
            metadata_cache,
            clock,
            throttle=leader_throttle,
            selector=replica_selector,
            io_pool=log_manager.environment.io_pool,
            follower_waits=follower_waits,
        )
        self.high_watermark_reviews = HighWatermarkReviews(
            self.partitions, metadata_cache, timer, self.delete_records_purgatory.check_and_complete
        )
        self._long_validations = LongValidations(log_manager.environment.workers)
        self._isr_expiration = IsrExpiration(self.partitions.online_partitions, timer, replica_lag_time_max_ms)

    # Hosted partitions

    def partition(self, topic_partition: TopicPartition) -> Partition:
        """Raises: as `HostedPartitions.partition`."""
        return self.partitions.partition(topic_partition)

    def hosted(self, topic_partition: TopicPartition) -> Partition | None:
        return self.partitions.hosted(topic_partition)

    def online_partitions(self) -> Iterator[Partition]:
        return self.partitions.online_partitions()

    # Produce

    def append(
        self,
        *,
        timeout_ms: int,
        required_acks: int,
        internal_topics_allowed: bool,
        origin: AppendOrigin,
        records: Mapping[TopicPartition, memoryview],
        verification_guards: Mapping[TopicPartition, object | None] = NO_GUARDS,
        respond: Callable[[Mapping[TopicPartition, LogAppendResult]], None],
    ) -> None:
        """Append to the leaders' logs in one call: see `append_in_steps`."""
        run_through(
            self.append_in_steps(
                timeout_ms=timeout_ms,
                required_acks=required_acks,
                internal_topics_allowed=internal_topics_allowed,
                origin=origin,
                records=records,
                verification_guards=verification_guards,
                respond=respond,
            )
        )

    def append_in_steps(
        self,
        *,
        timeout_ms: int,
        required_acks: int,
        internal_topics_allowed: bool,
        origin: AppendOrigin,
        records: Mapping[TopicPartition, memoryview],
        verification_guards: Mapping[TopicPartition, object | None] = NO_GUARDS,
        respond: Callable[[Mapping[TopicPartition, LogAppendResult]], None],
    ) -> Steps:
        """Append to the leaders' logs, `STEP_MS` a step, then call `respond`: with acks=-1 when the replicas have
        the records or `timeout_ms` is over. Records of clients whose validation takes long are a step that waits.
        """
        if required_acks not in VALID_ACKS:
            respond({tp: LogAppendResult(error=ErrorCode.INVALID_REQUIRED_ACKS) for tp in records})
            return
        results: dict[TopicPartition, LogAppendResult] = {}
        stats = self.partitions.topic_stats
        waits = False
        flushes: FlushWaits | None = None
        counted_topic, counters = "", None
        step_ends_ms = 0 if len(records) == 1 else self._clock.monotonic_ms() + STEP_MS
        for topic_partition, batch in records.items():
            if results and self._clock.monotonic_ms() >= step_ends_ms:
                yield None
                step_ends_ms = self._clock.monotonic_ms() + STEP_MS
                counters = None  # they may be those of a topic that is deleted
            guard = verification_guards.get(topic_partition)
            result = self._append_one(topic_partition, batch, required_acks, internal_topics_allowed, origin, guard)
            if isinstance(result, ValidationJob):
                result = yield from self._append_validated(topic_partition, result, required_acks, guard)
                counters = None
            results[topic_partition] = result
            if result.error:
                if stats is not None:
                    _count_refused(stats, topic_partition.topic, batch, result.error)
                continue
            info = result.info
            waits = waits or not info.is_committed
            if info.flush_required:
                flushes = flushes or FlushWaits()
                flushes.wait_for(result, self.partitions.hosted(topic_partition))
            if stats is not None:
                if counters is None or topic_partition.topic is not counted_topic:
                    counted_topic = topic_partition.topic
                    counters = stats.topics[counted_topic]
                _count_appended(counters, info, batch.nbytes)
        waits = waits and required_acks == -1 and not self._all_reached(results)
        if flushes is not None:
            flushes.when_done(partial(self._answer, timeout_ms, results, respond, waits=waits))
        elif not waits:
            respond(results)
        # The producer is answered first, then the other requests that these records complete. A producer that waits
        # for followers waits the shorter the sooner they get the records.
        if self.fetch_purgatory.watchers or self.produce_purgatory.watchers or self.delete_records_purgatory.watchers:
            yield from self._complete_delayed_by(results, step_ends_ms)
        if waits and flushes is None:
            self._answer(timeout_ms, results, respond, waits=True)

    def _answer(
        self,
        timeout_ms: int,
        results: Mapping[TopicPartition, LogAppendResult],
        respond: Callable[[Mapping[TopicPartition, LogAppendResult]], None],
        *,
        waits: bool,
    ) -> None:
        """Call `respond` now or, if it waits, when the replicas have the records."""
        if not waits:
            respond(results)
            return
        operation = DelayedProduce(timeout_ms, results, self.partitions, respond)
        if not operation.try_complete():
            self.produce_purgatory.watch(operation, results)

    def _complete_delayed_by(self, results: Mapping[TopicPartition, LogAppendResult], step_ends_ms: int) -> Steps:
        """`step_ends_ms`: of the step that has appended them; 0 if that was one append, which needs no more steps."""
        for topic_partition, result in results.items():
            if result.error == ErrorCode.NONE and (
                topic_partition in self.fetch_purgatory.watchers
                or topic_partition in self.produce_purgatory.watchers
                or topic_partition in self.delete_records_purgatory.watchers
            ):
                if step_ends_ms and self._clock.monotonic_ms() >= step_ends_ms:
                    yield None
                    step_ends_ms = self._clock.monotonic_ms() + STEP_MS
                if result.info.high_watermark_moved:
                    self.complete_delayed(topic_partition)
                else:
                    self._fetch_wakeups.wake_some(topic_partition, reads_to_log_end=True)

    def _all_reached(self, results: Mapping[TopicPartition, LogAppendResult]) -> bool:
        """Whether acks=-1 can be answered at once, as it always can without followers."""
        for topic_partition, result in results.items():
            if result.info.is_committed or result.error != ErrorCode.NONE:
                continue
            hosted = self.partitions.hosted(topic_partition)
            if hosted is None or hosted.in_sync.check_enough_replicas_reach_offset(result.required_offset) != (True, 0):
                return False
        return True

    def _append_one(
        self,
        topic_partition: TopicPartition,
        records: memoryview,
        required_acks: int,
        internal_topics_allowed: bool,
        origin: AppendOrigin,
        verification_guard: object | None,
        *,
        may_take_long: bool = False,
        finished: FinishedValidation | None = None,
    ) -> LogAppendResult | ValidationJob:
        """Append, or return what a worker process must do first."""
        if not internal_topics_allowed and topic_partition.topic in INTERNAL_TOPICS:
            return LogAppendResult(error=ErrorCode.INVALID_TOPIC_EXCEPTION)
        try:
            hosted = self._hosted.get(topic_partition)
            partition = hosted if isinstance(hosted, Partition) else self.partitions.partition(topic_partition)
            info = partition.append_as_leader(
                records,
                origin,
                required_acks,
                verification_guard,
                may_take_long=may_take_long or origin is not CLIENT,
                finished=finished,
            )
        except LongValidationError:
            return partition.validation_job(records)
        except RecordValidationError as invalid:
            if self.partitions.topic_stats is not None:
                _count_without_key(self.partitions.topic_stats, invalid)
            log.info("Refused records for %s: %s", topic_partition, invalid.message)
            return LogAppendResult(
                LogAppendInfo.unknown(self._log_start_offset(topic_partition)),
                invalid.code,
                invalid.message,
                invalid.record_errors,
            )
        except KafkaError as error:
            if error.code in EXPECTED_APPEND_ERRORS:
                return LogAppendResult(error=error.code)
            if self.partitions.topic_stats is not None:
                self.partitions.topic_stats.invalid_magic_number_records += isinstance(error, InvalidMagicError)
                self.partitions.topic_stats.invalid_offset_or_sequence_records += isinstance(
                    error, InvalidOffsetOrSequenceError
                )
            log.info("Error processing append operation on partition %s: %s", topic_partition, error.message)
            return LogAppendResult(LogAppendInfo.unknown(self._log_start_offset(topic_partition)), error.code)
        if info.records_converted and self.partitions.topic_stats is not None:
            self.partitions.topic_stats.converted_produced(topic_partition.topic, info.records_converted)
        return LogAppendResult(info)

    def _append_validated(
        self, topic_partition: TopicPartition, job: ValidationJob, required_acks: int, guard: object | None
    ) -> Generator[Wait | None, None, LogAppendResult]:
        """Have a client's records validated in a worker process, then append them.

        If the topic's config has changed meanwhile, or the log end for records that fit only there, it is done again.
        """
        records = memoryview(job.records)
        for _ in range(VALIDATIONS_MAX):
            finished = yield from self._long_validations.wait_for(job)
            result = self._append_one(
                topic_partition, records, required_acks, True, AppendOrigin.CLIENT, guard, finished=finished
            )
            if not isinstance(result, ValidationJob):
                return result
            job = result
        result = self._append_one(
            topic_partition, records, required_acks, True, AppendOrigin.CLIENT, guard, may_take_long=True
        )
        assert not isinstance(result, ValidationJob)
        return result

    def _log_start_offset(self, topic_partition: TopicPartition) -> int:
        hosted = self.partitions.hosted(topic_partition)
        if hosted is not None and hosted.is_leader and hosted.log is not None:
            return hosted.log.log_start_offset
        return -1

    def complete_delayed(self, topic_partition: TopicPartition, *, only_watermarks: bool = False) -> None:
        """Check the requests that wait for `topic_partition`, whose offsets have moved; `only_watermarks`: not its log
        end, for which followers wait.
        """
        if topic_partition in self.produce_purgatory.watchers:
            self.produce_purgatory.check_and_complete(topic_partition)
        if topic_partition in self.fetch_purgatory.watchers:
            if only_watermarks:
                self._fetch_wakeups.wake_some(topic_partition, reads_to_log_end=False)
            else:
                self._fetch_wakeups.wake(topic_partition)
        if topic_partition in self.delete_records_purgatory.watchers:
            self.delete_records_purgatory.check_and_complete(topic_partition)

    # DeleteRecords

    def delete_records(
        self,
        timeout_ms: int,
        offsets: Mapping[TopicPartition, int],
        respond: Callable[[Mapping[TopicPartition, LogDeleteRecordsResult]], None],
    ) -> None:
        """Move the log starts in one call: see `delete_records_in_steps`."""
        run_through(self.delete_records_in_steps(timeout_ms, offsets, respond))

    def delete_records_in_steps(
        self,
        timeout_ms: int,
        offsets: Mapping[TopicPartition, int],
        respond: Callable[[Mapping[TopicPartition, LogDeleteRecordsResult]], None],
    ) -> Steps:
        """Move the log starts, one partition a step. `respond` is called when every live replica has moved its log
        start, or when `timeout_ms` is over.
        """
        results: dict[TopicPartition, LogDeleteRecordsResult] = {}
        for topic_partition, offset in offsets.items():
            results[topic_partition] = self._delete_records_one(topic_partition, offset)
            yield None
        waiting = any(
            result.error == ErrorCode.NONE and result.low_watermark < result.requested_offset
            for result in results.values()
        )
        if waiting:
            operation = DelayedDeleteRecords(timeout_ms, results, self.partitions, respond)
            self.delete_records_purgatory.try_complete_else_watch(operation, list(results))
        else:
            respond(results)

    def _delete_records_one(self, topic_partition: TopicPartition, offset: int) -> LogDeleteRecordsResult:
        if topic_partition.topic in INTERNAL_TOPICS:
            return LogDeleteRecordsResult(error=ErrorCode.INVALID_TOPIC_EXCEPTION)
        try:
            requested, low_watermark = self.partitions.partition(topic_partition).delete_records(offset)
        except KafkaError as error:
            return LogDeleteRecordsResult(error=error.code)
        return LogDeleteRecordsResult(requested_offset=requested, low_watermark=low_watermark)

    # Failed directories

    def handle_log_dir_failure(self, topic_partitions: Sequence[TopicPartition]) -> None:
        """Take these partitions, whose log directory has failed, offline: requests for them get KAFKA_STORAGE_ERROR.

        A log of a partition that is not hosted is gone, and no more: another directory may get the partition later.
        """
        offline = [topic_partition for topic_partition in topic_partitions if self.partitions.hosted(topic_partition)]
        for topic_partition in offline:
            self.partitions.take_offline(topic_partition)
            self.complete_delayed(topic_partition)
        self.fetchers.remove(offline)
        self.moves.handle_log_dir_failure(offline)

    def startup(self) -> None:
        """Start the timer that removes lagging followers from ISRs."""
        self._isr_expiration.begin()

    def shutdown(self) -> None:
        """Stop fetchers and moves, and write the last high watermarks."""
        self._isr_expiration.finish()
        self.fetchers.shutdown()
        self.moves.shutdown()
        self.high_watermark_checkpoints.finish()


def _count_appended(counters: BrokerTopicMetrics, info: LogAppendInfo, size: int) -> None:
    counters.total_produce_requests += 1
    if info.first_offset >= 0:  # else there were no records
        counters.messages_in += info.last_offset - info.first_offset + 1
    counters.bytes_in += size


def _count_without_key(stats: BrokerTopicStats, refused: RecordValidationError) -> None:
    stats.no_key_compacted_topic_records += sum(reason.startswith(NO_KEY) for _, reason in refused.record_errors)


def _count_refused(stats: BrokerTopicStats, topic: str, batch: memoryview, error: ErrorCode) -> None:
    stats.refused(
        topic,
        is_failure=error not in EXPECTED_APPEND_ERRORS,
        bytes_rejected=batch.nbytes if error == ErrorCode.MESSAGE_TOO_LARGE else 0,
    )
    stats.invalid_message_crc_records += error == ErrorCode.CORRUPT_MESSAGE
