"""Compacts the logs of a broker: selects the next log and limits the number of runs.

    a round     examine every compacted log, a few at a time: apply its retention, and find the filthiest one
                found one, and a run is free    -> begin a `CleanRun`, and another round
                found none                      -> another round after log.cleaner.backoff.ms
    a run ends                                  -> update the cleaner checkpoint, and another round

At most `log.cleaner.threads` runs exist, each in a worker process with an equal share of the buffers and of
log.cleaner.io.max.bytes.per.second (Kafka's threads share one throttle). A partition whose run failed by a bug, or
whose worker died, is uncleanable until the next start or the next change of the cleaner's configs, which may have been
the cause: more memory than there is. With configs that leave no room for keys, no run begins. A log that is being
moved to another directory is skipped.

Each change of a log cancels its run first (`abort`): truncation, deletion, a move, a failed directory, a new policy.
None of these changes waits, so that Kafka's states LogCleaningPaused and LogCleaningAborted are not needed: the change
is complete before a round examines the log, and an aborted run blocks its partition until it has ended.

Invariants: a partition has at most one run; retention deletes no segment of a log with a run; the checkpoint of a log
advances only after all segments below are in place.

Kafka: LogCleaner, LogCleanerManager.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from odradek.protocol.errors import KafkaError
from odradek.storage.cleaning.clean_job import CleanStats
from odradek.storage.cleaning.cleaner_checkpoints import CleanerCheckpoints
from odradek.storage.config.cleaner_config import NO_ROOM, has_room
from odradek.storage.log.log_visits import LogVisits

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.cleaning.clean_job import CleanJob, CleanResult
    from odradek.storage.cleaning.clean_run import CleanRun
    from odradek.storage.cleaning.log_to_clean import LogToClean
    from odradek.storage.config.cleaner_config import CleanerConfig
    from odradek.storage.disk.environment import Environment
    from odradek.storage.disk.log_dir import LogDir
    from odradek.storage.log.unified_log import UnifiedLog
    from odradek.timer.task import TimerTask

MIN_BACKOFF_MS: Final = 1

logger = logging.getLogger(__name__)


class LogCleaner:
    """The cleaner of one broker. It is idle before `startup`."""

    __slots__ = (
        "_dirtiest_ratio",
        "_environment",
        "_filthiest",
        "_is_round_running",
        "_logs",
        "_longest_delay_ms",
        "_moving",
        "_next_round",
        "_now_ms",
        "_runs",
        "_visits",
        "checkpoints",
        "config",
        "dirtiest_ratio",
        "io_bytes",
        "is_running",
        "last_stats",
        "longest_delay_ms",
        "uncleanable",
    )

    def __init__(
        self,
        config: CleanerConfig,
        logs: Mapping[TopicPartition, UnifiedLog],
        moving: Container[TopicPartition],
        environment: Environment,
    ) -> None:
        """`logs` and `moving` (the partitions with a future log) are live views."""
        self.config = config
        self.checkpoints = CleanerCheckpoints(logs)
        self.uncleanable: set[tuple[str, TopicPartition]] = set()
        """(log directory, partition) of each failed compaction."""
        self.last_stats = CleanStats()
        """Of the last compaction that ended."""
        self.dirtiest_ratio = 0.0
        """The highest cleanable ratio that the last round found."""
        self._dirtiest_ratio = 0.0
        self.longest_delay_ms = 0
        """The longest time for which a log has exceeded max.compaction.lag.ms, of the last round that found a log to
        compact. Kafka: PreCleanStats.
        """
        self._longest_delay_ms = 0
        self.io_bytes = 0
        """What all compactions have read and written. Kafka: Throttler."""
        self._logs = logs
        self._moving = moving
        self._environment = environment
        self._runs: dict[TopicPartition, CleanRun] = {}
        self._visits = LogVisits(environment.timer)
        self.is_running = False
        self._is_round_running = False
        self._next_round: TimerTask | None = None
        self._filthiest: LogToClean | None = None
        self._now_ms = 0

    # -- start and stop ----------------------------------------------------------------------------------

    def startup(self) -> None:
        """Begin the rounds. With log.cleaner.enable=false, no log is compacted, and compacted logs get no retention."""
        self.is_running = self.config.enable
        self._warn_without_room()
        self._schedule_round(0)

    def shutdown(self) -> None:
        """Cancel all runs. The next start removes the files of killed workers, if they are not removed before."""
        self.is_running = False
        self._visits.stop()
        if self._next_round is not None:
            self._next_round.cancel()
        self._cancel_all()

    def reconfigure(self, config: CleanerConfig) -> None:
        """Apply new settings. Running compactions are cancelled and start again, as in Kafka.

        Logs whose compaction has failed are tried again, too.
        """
        self.config = config
        self.uncleanable.clear()
        self._cancel_all()
        self._warn_without_room()
        self._schedule_round(0)

    def _has_room(self) -> bool:
        return has_room(self.config.offset_map_bytes, self.config.dedupe_buffer_load_factor)

    def _warn_without_room(self) -> None:
        if self.is_running and not self._has_room():
            factor = self.config.dedupe_buffer_load_factor
            logger.error("No log is compacted: %s (log.cleaner.io.buffer.load.factor=%s)", NO_ROOM, factor)

    def _cancel_all(self) -> None:
        for run in list(self._runs.values()):
            run.cancel()

    # -- changes of logs -----------------------------------------------------------------------------------

    def abort(self, topic_partition: TopicPartition) -> None:
        """Cancel the run of a partition, if any: the caller may change the log when this returns.

        Kafka: LogCleaner.abortCleaning.
        """
        run = self._runs.get(topic_partition)
        if run is not None:
            logger.info("The cleaning for partition %s is aborted", topic_partition)
            run.cancel()

    def truncated(self, log: UnifiedLog) -> None:
        """Call after `abort` and a truncation: lowers the checkpoint, because later appends are not compacted.

        Kafka: LogCleanerManager.maybeTruncateCheckpoint.
        """
        if log.config.compact:
            self.checkpoints.truncate(log.log_dir, log.topic_partition, log.segments.active.base_offset)

    def alter_checkpoint_dir(self, topic_partition: TopicPartition, source: LogDir, target: LogDir) -> None:
        """Call after `abort` and a move: moves the checkpoint entry to the new directory."""
        offset = self.checkpoints.remove(source, topic_partition)
        if offset is not None:
            self.checkpoints.update(target, topic_partition, offset)
        if (source.path, topic_partition) in self.uncleanable:
            self.uncleanable.remove((source.path, topic_partition))
            self.uncleanable.add((target.path, topic_partition))

    def handle_log_dir_failure(self, log_dir: LogDir) -> None:
        """Cancel the runs in a failed directory and drop its checkpoints."""
        self.checkpoints.forget_dir(log_dir)
        for run in list(self._runs.values()):
            if run.log.log_dir is log_dir:
                run.cancel()

    @property
    def since_last_round_ms(self) -> int:
        """Since the last round began; 0 before the first one."""
        return self._environment.clock.time_ms() - self._now_ms if self._now_ms else 0

    def uncleanable_bytes(self, topic_partition: TopicPartition) -> int:
        """What a compaction of an uncleanable partition would have to do, in bytes; 0 if its log cannot be examined."""
        from odradek.storage.cleaning.log_to_clean import cleanable_bytes

        log = self._logs.get(topic_partition)
        if log is None:
            return 0
        checkpoint = self.checkpoints.offset_of(log.log_dir, topic_partition)
        try:
            return cleanable_bytes(log, checkpoint, self._environment.clock.time_ms())
        except OSError:
            return 0

    def is_cleaning(self, topic_partition: TopicPartition) -> bool:
        return topic_partition in self._runs

    # -- rounds --------------------------------------------------------------------------------------------

    def _schedule_round(self, delay_ms: int) -> None:
        if not self.is_running:
            return
        if self._next_round is not None:
            self._next_round.cancel()
        timer = self._environment.timer
        schedule = timer.schedule_round if delay_ms else timer.schedule
        self._next_round = schedule(delay_ms, self._begin_round)

    def _begin_round(self) -> None:
        if self._is_round_running or len(self._runs) >= self.config.threads:
            return
        self._is_round_running = True
        self._filthiest = None
        self._dirtiest_ratio = 0.0
        self._longest_delay_ms = 0
        self._now_ms = self._environment.clock.time_ms()
        self.uncleanable = {(path, tp) for path, tp in self.uncleanable if tp in self._logs}
        self._visits.visit([log for log in self._logs.values() if log.config.compact], self._visit, self._end_round)

    def _may_clean(self, log: UnifiedLog) -> bool:
        """Whether the cleaner may apply retention to the log and compact it now."""
        topic_partition = log.topic_partition
        return (
            log.config.compact
            and self._logs.get(topic_partition) is log
            and topic_partition not in self._runs
            and topic_partition not in self._moving
            and (log.log_dir.path, topic_partition) not in self.uncleanable
        )

    def _guarded(self, log: UnifiedLog, work: Callable[[UnifiedLog], None]) -> None:
        """Call `work`. An error marks this log as uncleanable, or its directory as failed; other logs continue."""
        try:
            work(log)
        except KafkaError as error:
            logger.error("Failed to calculate log cleaning stats for partition %s: %s", log.topic_partition, error)
            self.uncleanable.add((log.log_dir.path, log.topic_partition))
        except OSError as error:
            log.log_dir.fail(f"Error while examining the segments of {log.topic_partition}", error)
        except Exception:
            self.uncleanable.add((log.log_dir.path, log.topic_partition))
            raise

    def _visit(self, log: UnifiedLog) -> None:
        if self._may_clean(log):
            self._guarded(log, self._compare)

    def _compare(self, log: UnifiedLog) -> None:
        """Kafka: LogCleanerManager.grabFilthiestCompactedLog."""
        log.delete_old_segments()
        if log.log_dir.space.is_full:
            return
        found = self._examine(log)
        self._dirtiest_ratio = max(self._dirtiest_ratio, found.cleanable.cleanable_ratio)
        self._longest_delay_ms = max(self._longest_delay_ms, found.cleanable.compaction_delay_ms)
        if found.is_filthier(self._filthiest):
            self._filthiest = found

    def _examine(self, log: UnifiedLog) -> LogToClean:
        from odradek.storage.cleaning.log_to_clean import examine  # here and below: on first use, for a faster start

        checkpoint = self.checkpoints.offset_of(log.log_dir, log.topic_partition)
        found = examine(log, checkpoint, self._now_ms)
        if found.force_update_checkpoint:
            self.checkpoints.update(log.log_dir, log.topic_partition, found.cleanable.first_dirty_offset)
        return found

    def _end_round(self) -> None:
        self._is_round_running = False
        self.dirtiest_ratio = self._dirtiest_ratio
        filthiest, self._filthiest = self._filthiest, None
        if filthiest is None or not self._has_room():
            # Kafka's cleaner threads do not pause at 0. Here the event loop and the threads would starve.
            self._schedule_round(max(self.config.backoff_ms, MIN_BACKOFF_MS))
            return
        self.longest_delay_ms = self._longest_delay_ms
        self._schedule_round(0)  # before the run: an error in this log must not stop the rounds
        log = filthiest.log
        if self._may_clean(log):  # it may have changed since it was examined
            self._guarded(log, self._begin_run_if_due)

    # -- runs ------------------------------------------------------------------------------------------------

    def _begin_run_if_due(self, log: UnifiedLog) -> None:
        """A truncation since the round looked at the log may have left nothing to clean: a run would find no key, and
        set the checkpoint to 0.
        """
        found = self._examine(log)
        if found.is_filthier(None):
            self._begin_run(found)

    def _begin_run(self, found: LogToClean) -> None:
        from odradek.storage.cleaning.clean_run import CleanRun
        from odradek.storage.cleaning.log_cleaning import clean_log

        log = found.log
        logger.info(
            "Beginning cleaning of log %s, dirty from offset %d, below offset %d",
            log.topic_partition,
            found.cleanable.first_dirty_offset,
            found.cleanable.first_uncleanable_offset,
        )
        run = CleanRun(log, self.job_of(found), self._environment, self._run_ended)
        self._runs[log.topic_partition] = run
        try:
            run.start(clean_log)
        except BaseException:
            del self._runs[log.topic_partition]
            raise

    def job_of(self, found: LogToClean) -> CleanJob:
        """The job for the worker process."""
        from odradek.storage.cleaning.clean_job import CleanJob, LastRecord

        log, cleanable, config = found.log, found.cleanable, self.config
        threads = config.threads
        return CleanJob(
            directory=log.dir,
            topic_partition=log.topic_partition,
            config=log.config,
            base_offsets=tuple(base for base in log.segments.base_offsets if base < cleanable.first_uncleanable_offset),
            first_dirty_offset=cleanable.first_dirty_offset,
            first_uncleanable_offset=cleanable.first_uncleanable_offset,
            now_ms=self._environment.clock.time_ms(),
            last_records={
                producer_id: LastRecord(
                    entry.last_data_offset if entry.last_data_offset >= 0 else None, entry.producer_epoch
                )
                for producer_id, entry in log.active_producers().items()
            },
            offset_map_bytes=config.offset_map_bytes,
            offset_map_load_factor=config.dedupe_buffer_load_factor,
            io_buffer_bytes=config.io_buffer_bytes // threads // 2,
            io_max_bytes_per_second=config.io_max_bytes_per_second / threads,
            max_message_bytes=max(config.max_message_bytes, log.config.max_message_bytes),
        )

    def _run_ended(self, run: CleanRun) -> None:
        """Kafka: LogCleanerManager.doneCleaning."""
        topic_partition, log_dir = run.job.topic_partition, run.log.log_dir
        del self._runs[topic_partition]
        self._schedule_round(0)
        if run.error is not None:
            logger.error(
                "Cleaning of %s failed; it is not compacted again before a restart or a change of the cleaner's "
                "configs: %s",
                topic_partition,
                run.error,
            )
            self.uncleanable.add((log_dir.path, topic_partition))
        elif run.result is not None:
            self.checkpoints.update(log_dir, topic_partition, run.result.next_dirty_offset)
            self.last_stats = run.result.stats
            self.io_bytes += run.result.stats.io_bytes
            _log_result(run, run.result)


def _log_result(run: CleanRun, result: CleanResult) -> None:
    stats = result.stats
    logger.info(
        "Cleaned log %s (dirty section = [%d, %d)): read %d messages in %d bytes, of which %d messages in %d bytes are "
        "left; %d keys, the key buffer was %.1f %% full; %d ms in all, %d ms for the keys",
        run.job.topic_partition,
        run.job.first_dirty_offset,
        result.next_dirty_offset,
        stats.messages_read,
        stats.bytes_read,
        stats.messages_written,
        stats.bytes_written,
        stats.map_entries,
        100 * stats.map_utilization,
        stats.elapsed_ms,
        stats.index_ms,
    )
    if stats.invalid_messages_read:
        logger.warning("Found %d invalid messages during compaction", stats.invalid_messages_read)
