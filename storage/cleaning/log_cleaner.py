"""Compaction of the logs of a broker: which one is next, how many at a time, and what comes of it.

    a round     look at every compacted log, a few at a time: apply its retention, and find the filthiest
                found one and a hand is free    -> begin a `CleanRun`, and another round
                found none                      -> another round after log.cleaner.backoff.ms
    a run ends                                  -> note how far the log is clean, and another round

`log.cleaner.threads` runs go on at a time, each in a worker process with its share of the buffers and of
log.cleaner.io.max.bytes.per.second. A partition whose run failed by a bug, or whose worker died, is uncleanable until
the next start. A log that is being moved to another directory is left alone.

Whoever changes a log under a run cancels it first (`abort`): truncation, deletion, a move, a failed directory, the
policy. None of these waits, so that Kafka's states LogCleaningPaused and LogCleaningAborted are not needed: who aborts
is done with the log before a round can look at it, and while the run that was aborted comes to its end, its partition
still has one. Kafka's threads share one throttle; here each run has an equal part of it.

Invariants: a partition has at most one run; a log under a run loses no segment to retention; the checkpoint of a log
moves up only after everything below has been put in place.

Kafka: LogCleaner and LogCleanerManager.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from odradek.protocol.errors import KafkaError
from odradek.storage.cleaning.cleaner_checkpoints import CleanerCheckpoints
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

logger = logging.getLogger(__name__)


class LogCleaner:
    """The cleaner of one broker. It does nothing before `startup`."""

    __slots__ = (
        "_environment",
        "_filthiest",
        "_is_looking",
        "_logs",
        "_moving",
        "_next_round",
        "_now_ms",
        "_runs",
        "_visits",
        "checkpoints",
        "config",
        "is_running",
        "uncleanable",
    )

    def __init__(
        self,
        config: CleanerConfig,
        logs: Mapping[TopicPartition, UnifiedLog],
        moving: Container[TopicPartition],
        environment: Environment,
    ) -> None:
        """`logs` and `moving` (the partitions with a future log) are those there are, now and later."""
        self.config = config
        self.checkpoints = CleanerCheckpoints(logs)
        self.uncleanable: set[tuple[str, TopicPartition]] = set()
        """Partitions whose compaction has failed, with the directory they failed in."""
        self._logs = logs
        self._moving = moving
        self._environment = environment
        self._runs: dict[TopicPartition, CleanRun] = {}
        self._visits = LogVisits(environment.timer)
        self.is_running = False
        self._is_looking = False
        self._next_round: TimerTask | None = None
        self._filthiest: LogToClean | None = None
        self._now_ms = 0

    # -- life --------------------------------------------------------------------------------------------

    def startup(self) -> None:
        """Begin, unless log.cleaner.enable says no: then no log is compacted, nor are compacted ones deleted from."""
        self.is_running = self.config.enable
        self._look_again(0)

    def shutdown(self) -> None:
        """Cancel everything. What a killed worker has left is removed at the next start, if not before."""
        self.is_running = False
        self._visits.stop()
        if self._next_round is not None:
            self._next_round.cancel()
        self._cancel_all()

    def reconfigure(self, config: CleanerConfig) -> None:
        """Go on with other settings. Runs under way begin anew, as they do in Kafka."""
        self.config = config
        self._cancel_all()
        self._look_again(0)

    def _cancel_all(self) -> None:
        for run in list(self._runs.values()):
            run.cancel()

    # -- what others do to logs ----------------------------------------------------------------------------

    def abort(self, topic_partition: TopicPartition) -> None:
        """Cancel the run of a partition, if there is one: the log may be changed when this returns."""
        run = self._runs.get(topic_partition)
        if run is not None:
            logger.info("The cleaning for partition %s is aborted", topic_partition)
            run.cancel()

    def truncated(self, log: UnifiedLog) -> None:
        """A log was cut, after `abort`: what is appended to it from now on has not been compacted."""
        if log.config.compact:
            self.checkpoints.truncate(log.log_dir, log.topic_partition, log.segments.active.base_offset)

    def alter_checkpoint_dir(self, topic_partition: TopicPartition, source: LogDir, target: LogDir) -> None:
        """A log was moved to another directory, after `abort`."""
        offset = self.checkpoints.remove(source, topic_partition)
        if offset is not None:
            self.checkpoints.update(target, topic_partition, offset)
        if (source.path, topic_partition) in self.uncleanable:
            self.uncleanable.remove((source.path, topic_partition))
            self.uncleanable.add((target.path, topic_partition))

    def handle_log_dir_failure(self, log_dir: LogDir) -> None:
        """Let go of the logs of a failed directory."""
        self.checkpoints.forget_dir(log_dir)
        for run in list(self._runs.values()):
            if run.log.log_dir is log_dir:
                run.cancel()

    def is_cleaning(self, topic_partition: TopicPartition) -> bool:
        return topic_partition in self._runs

    # -- rounds --------------------------------------------------------------------------------------------

    def _look_again(self, delay_ms: int) -> None:
        if not self.is_running:
            return
        if self._next_round is not None:
            self._next_round.cancel()
        self._next_round = self._environment.timer.schedule(delay_ms, self._begin_round)

    def _begin_round(self) -> None:
        if self._is_looking or len(self._runs) >= self.config.threads:
            return
        self._is_looking = True
        self._filthiest = None
        self._now_ms = self._environment.clock.time_ms()
        self.uncleanable = {(path, tp) for path, tp in self.uncleanable if tp in self._logs}
        self._visits.visit([log for log in self._logs.values() if log.config.compact], self._visit, self._end_round)

    def _is_ours(self, log: UnifiedLog) -> bool:
        """Whether retention and compaction of the log are the cleaner's, and nothing is under way there."""
        topic_partition = log.topic_partition
        return (
            log.config.compact
            and self._logs.get(topic_partition) is log
            and topic_partition not in self._runs
            and topic_partition not in self._moving
            and (log.log_dir.path, topic_partition) not in self.uncleanable
        )

    def _guarded(self, log: UnifiedLog, work: Callable[[UnifiedLog], None]) -> None:
        """Whatever is wrong with one log ends its compaction, and not that of the others."""
        try:
            work(log)
        except KafkaError as error:
            logger.error("Failed to calculate log cleaning stats for partition %s: %s", log.topic_partition, error)
            self.uncleanable.add((log.log_dir.path, log.topic_partition))
        except OSError as error:
            log.log_dir.fail(f"Error while looking at the segments of {log.topic_partition}", error)
        except Exception:
            self.uncleanable.add((log.log_dir.path, log.topic_partition))
            raise

    def _visit(self, log: UnifiedLog) -> None:
        if self._is_ours(log):
            self._guarded(log, self._compare)

    def _compare(self, log: UnifiedLog) -> None:
        log.delete_old_segments()
        if log.log_dir.space.is_full:
            return
        found = self._look_at(log)
        if found.is_filthier(self._filthiest):
            self._filthiest = found

    def _look_at(self, log: UnifiedLog) -> LogToClean:
        from odradek.storage.cleaning.log_to_clean import (
            look_at,  # here and below: a broker starts without what it may not need
        )

        checkpoint = self.checkpoints.offset_of(log.log_dir, log.topic_partition)
        found = look_at(log, checkpoint, self._now_ms)
        if found.force_update_checkpoint:
            self.checkpoints.update(log.log_dir, log.topic_partition, found.cleanable.first_dirty_offset)
        return found

    def _end_round(self) -> None:
        self._is_looking = False
        filthiest, self._filthiest = self._filthiest, None
        if filthiest is None:
            self._look_again(self.config.backoff_ms)
            return
        self._look_again(0)  # first: whatever is wrong with this log, the next round is for the others
        log = filthiest.log
        if self._is_ours(log):  # as it was when it was visited; else the next round finds another one
            self._guarded(log, lambda log: self._begin_run(self._look_at(log)))

    # -- runs ------------------------------------------------------------------------------------------------

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
        """What a worker is told."""
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
        topic_partition, log_dir = run.job.topic_partition, run.log.log_dir
        del self._runs[topic_partition]
        self._look_again(0)
        if run.error is not None:
            logger.error(
                "Cleaning of %s failed; it is not tried again before a restart: %s", topic_partition, run.error
            )
            self.uncleanable.add((log_dir.path, topic_partition))
        elif run.result is not None:
            self.checkpoints.update(log_dir, topic_partition, run.result.next_dirty_offset)
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
