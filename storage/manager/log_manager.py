"""All logs of a broker: loads, finds, creates, moves, deletes and closes them.

`log_startup` and `log_loading` load the logs; `log_checkpoints` writes the checkpoints; `log_sweeps` does the recurring
work; `log_creation` creates logs; `log_moves` replaces a log by its future log.

The replica manager owns the high watermarks and calls `checkpoint_high_watermarks` every 5 s. `log_deletions` renames
and removes the directories of deleted logs.

Invariants: a partition has at most one log and at most one future log, which a move fills in another directory (a
second one found at start is fatal); the logs of a failed directory are removed from here, and the others continue; the
clean-shutdown marker is written last, and only if everything before it succeeded.

Kafka: LogManager.
"""

from __future__ import annotations

import errno
import logging
from functools import partial
from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.cleaning.log_cleaner import LogCleaner
from odradek.storage.config.topic_configs import TopicConfigs
from odradek.storage.disk.log_dir import LogDir, LogDirError
from odradek.storage.log import log_checkpoints, truncation
from odradek.storage.manager.log_creation import LogCreation
from odradek.storage.manager.log_deletions import LogDeletions
from odradek.storage.manager.log_moves import LogMoves
from odradek.storage.manager.log_startup import SLICE_MS, LogStartup
from odradek.storage.manager.log_sweeps import LogManagerSettings, LogSweeps, delete_old_segments_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence, Set
    from contextlib import AbstractContextManager

    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.config.log_config import LogConfig
    from odradek.storage.disk.environment import Environment
    from odradek.storage.log.unified_log import UnifiedLog
    from odradek.storage.manager.log_loading import LastStop
    from odradek.storage.producers.producer_state_manager import ProducerMemory

__all__ = ["LogManager", "LogManagerSettings"]

logger = logging.getLogger(__name__)


class LogManager:
    """The logs in all log directories."""

    def __init__(
        self,
        log_dirs: Sequence[str],
        broker_settings: Mapping[str, str],
        environment: Environment,
        settings: LogManagerSettings | None = None,
    ) -> None:
        self.environment = environment
        settings = settings or LogManagerSettings()
        self.sweeps = LogSweeps(environment, settings, self.all_logs)
        self.log_dirs = [LogDir(path, environment) for path in log_dirs]
        for log_dir in self.log_dirs:
            log_dir.on_failure = self._on_dir_failure
        self.on_log_dir_failure: Callable[[LogDir, list[TopicPartition]], None] | None = None
        """Called with a failed directory and the partitions whose current log was in it. Set by the replica manager."""
        self._logs: dict[TopicPartition, UnifiedLog] = {}
        self._future_logs: dict[TopicPartition, UnifiedLog] = {}
        self.cleaner = LogCleaner(settings.cleaner, self._logs, self._future_logs, environment)
        self._configs = TopicConfigs(broker_settings)
        self._high_watermarks: dict[tuple[str, TopicPartition], int] = {}
        """Keyed by directory too: a directory that a log was moved away from may still have an entry for it."""
        self._deletions = LogDeletions(
            environment, self._checkpoint_lowered, lambda: self._configs.default.file_delete_delay_ms
        )
        self._creation = LogCreation(self.log_dirs, self._configs, environment, self._deletions, self.all_logs)
        self._moves = LogMoves(environment, self._deletions)
        self._startup: LogStartup | None = None
        self.recovery_threads_per_data_dir = settings.recovery_threads_per_data_dir
        """A dynamic config: set until the logs are loaded, which is when it counts."""
        self._stopped = False
        self._are_dirs_locked = False
        self.is_started = False
        """Whether all logs are loaded."""

    # -- look-up ----------------------------------------------------------------------------------------

    @property
    def deletions(self) -> LogDeletions:
        return self._deletions

    @property
    def live_log_dirs(self) -> list[LogDir]:
        return [log_dir for log_dir in self.log_dirs if log_dir.is_online]

    def get_log(self, topic_partition: TopicPartition, *, is_future: bool = False) -> UnifiedLog | None:
        return (self._future_logs if is_future else self._logs).get(topic_partition)

    def has_log(self, topic_partition: TopicPartition) -> bool:
        """Also a future one alone."""
        return topic_partition in self._logs or topic_partition in self._future_logs

    def all_logs(self) -> list[UnifiedLog]:
        """All logs, including future logs."""
        return [*self._logs.values(), *self._future_logs.values()]

    def logs_in(self, log_dir: LogDir) -> list[UnifiedLog]:
        return [log for log in self.all_logs() if log.log_dir is log_dir]

    def is_log_dir_online(self, path: str) -> bool:
        """Raises KafkaError LOG_DIR_NOT_FOUND for a path that is not in `log.dirs`."""
        for log_dir in self.log_dirs:
            if log_dir.path == path:
                return log_dir.is_online
        raise KafkaError(ErrorCode.LOG_DIR_NOT_FOUND, f"Log dir {path} is not found in the config.")

    def checkpointed_high_watermark(self, log: UnifiedLog) -> int:
        """The high watermark of the last checkpoint before the start; 0 if unknown."""
        return self._high_watermarks.get((log.log_dir.path, log.topic_partition), 0)

    # -- configuration ------------------------------------------------------------------------------------

    def config_of(self, topic: str) -> LogConfig:
        return self._configs.of(topic)

    def update_topic_config(self, topic: str, overrides: Mapping[str, str]) -> None:
        """Apply a topic's overrides to its logs, if they changed."""
        if self._configs.override(topic, overrides):
            for topic_partition in self._configs.partitions_with_logs(topic):
                for log in (self._logs.get(topic_partition), self._future_logs.get(topic_partition)):
                    if log is not None:
                        self._apply_config(log)

    def forget_configs_without_logs(self) -> None:
        """Forget the overrides of topics that have no log. Not while logs are created: they are read before that."""
        if self.is_started:
            self._configs.forget_without_logs()

    def topic_configs_updated_meanwhile(self) -> AbstractContextManager[Set[str]]:
        """The topics whose configs are updated until the end of the block."""
        return self._configs.updated_meanwhile()

    def update_broker_settings(self, broker_settings: Mapping[str, str]) -> None:
        """Apply new broker-wide defaults to all logs, a few per callback."""
        if self._configs.set_broker_settings(broker_settings):
            self.sweeps.visits.visit(self.all_logs(), self._apply_config)

    def _apply_config(self, log: UnifiedLog) -> None:
        was_compacted = log.config.compact
        log.update_config(self._configs.of(log.topic_partition.topic))
        if was_compacted and not log.config.compact:
            self.cleaner.abort(log.topic_partition)

    # -- start ----------------------------------------------------------------------------------------------

    def startup(self, topic_overrides: Mapping[str, Mapping[str, str]] | None = None) -> None:
        """Load all logs synchronously: for tests and tools, whose pools run work in place.

        Raises: LogDirError when no directory is usable, or a log cannot be loaded.
        """
        refused: list[BaseException | None] = []
        self.begin_startup(topic_overrides or {}, refused.append, slice_ms=2**62)
        if refused[0] is not None:
            raise refused[0]

    def begin_startup(
        self,
        topic_overrides: Mapping[str, Mapping[str, str]],
        done: Callable[[BaseException | None], None],
        *,
        slice_ms: int = SLICE_MS,
    ) -> None:
        """Lock the directories and load all logs; then `done` gets None, or the error that refuses the start."""
        for topic, overrides in topic_overrides.items():
            self._configs.override(topic, overrides)

        def loaded(error: BaseException | None) -> None:
            self.is_started = error is None
            if error is None:
                self.cleaner.checkpoints.load(self.live_log_dirs)
            else:
                self._abort_startup()
            done(error)

        try:
            self.lock_dirs()
        except LogDirError as error:
            loaded(error)
            return
        self._startup = LogStartup(self, self.environment, self.recovery_threads_per_data_dir, loaded)
        self._startup.begin(self.live_log_dirs, slice_ms=slice_ms)

    def lock_dirs(self) -> None:
        """Lock the directories, once, before anything in them is read. Raises LogDirError when none is usable."""
        if self._are_dirs_locked:
            return
        self._are_dirs_locked = True
        for log_dir in self.log_dirs:
            try:
                log_dir.create()
                log_dir.lock()
            except OSError as error:
                log_dir.fail("Error while opening the log directory", error)
        self.require_a_live_dir()

    def _abort_startup(self) -> None:
        """Release all locks and descriptors after a failed start."""
        self._stopped = True
        self._deletions.stop()
        self.sweeps.stop()
        for log in self.all_logs():
            log.discard()
        if self._startup is not None:
            self._startup.cancel()
        for log_dir in self.log_dirs:
            log_dir.unlock()

    def require_a_live_dir(self) -> None:
        """Raises LogDirError when all directories have failed."""
        if not self.live_log_dirs:
            failures = "; ".join(f"{log_dir.path}: {log_dir.failure}" for log_dir in self.log_dirs)
            raise LogDirError(f"None of the log directories can be used: {failures}")

    def keep_high_watermarks(self, log_dir: LogDir, last_stop: LastStop) -> None:
        """Keep the checkpointed high watermarks of a directory."""
        for topic_partition, high_watermark in last_stop.high_watermarks.items():
            self._high_watermarks[log_dir.path, topic_partition] = high_watermark

    def register(self, log: UnifiedLog, *, is_future: bool) -> None:
        logs = self._future_logs if is_future else self._logs
        other = logs.get(log.topic_partition)
        if other is not None and is_future:
            raise LogDirError(f"Duplicate log directories found: {log.dir}, {other.dir}")
        if other is not None:
            raise LogDirError(
                f"Duplicate log directories for {log.topic_partition} are found in both {log.dir} and {other.dir}. It "
                "is likely because log directory failure happened while broker was replacing current replica with "
                "future replica. Recover broker from this failure by manually deleting one of the two directories for "
                "this partition. It is recommended to delete the partition in the log directory that is known to have "
                "failed recently."
            )
        logs[log.topic_partition] = log
        if is_future:
            self.cleaner.abort(log.topic_partition)
        self._configs.log_added(log.topic_partition)

    # -- creation ---------------------------------------------------------------------------------------------

    def maybe_update_preferred_dir(self, topic_partition: TopicPartition, path: str) -> None:
        """Create the partition's next log in this directory, unless it has one there already."""
        for logs in (self._logs, self._future_logs):
            log = logs.get(topic_partition)
            if log is not None and log.log_dir.path == path:
                return
        self._creation.placement.prefer(topic_partition, path)

    def prepare_log(
        self,
        topic_partition: TopicPartition,
        done: Callable[[], None],
        *,
        is_new: bool = False,
        is_future: bool = False,
    ) -> None:
        """Make the files of the log that `get_or_create_log` will create, in the I/O pool; then call `done`.

        Does nothing for a log that exists or cannot be created.
        """
        if self.get_log(topic_partition, is_future=is_future) is not None:
            done()
        else:
            self._creation.prepare(topic_partition, done, is_new=is_new, is_future=is_future)

    def discard_prepared_logs(
        self, topic_partitions: Iterable[TopicPartition], done: Callable[[], None], *, is_future: bool = False
    ) -> None:
        """Remove the files of those logs that were prepared and not created; then call `done`."""
        self._creation.preparations.discard(((each, is_future) for each in topic_partitions), done)

    def get_or_create_log(
        self,
        topic_partition: TopicPartition,
        topic_id: bytes | None = None,
        *,
        is_new: bool = False,
        is_future: bool = False,
    ) -> UnifiedLog:
        """The partition's log; creates it if missing. `when_durable` calls back when a new one survives a crash.

        `is_new`: the controller has just created the replica. Otherwise a missing log may be in an offline directory,
        and must not be replaced by an empty one. A future log is created in the preferred directory, which must differ
        from the log's. Raises KafkaError KAFKA_STORAGE_ERROR.
        """
        log = self.get_log(topic_partition, is_future=is_future)
        if log is not None:
            if topic_id is not None:
                log.assign_topic_id(topic_id)
            return log
        log = self._creation.create(topic_partition, topic_id, is_new=is_new, is_future=is_future)
        self.register(log, is_future=is_future)
        log.log_dir.sync_queue.sync_dir(log.dir)
        log.log_dir.sync_queue.sync_dir(log.log_dir.path)
        return log

    def when_durable(self, callback: Callable[[OSError | None], None]) -> None:
        """Call back when all small files and directory changes queued so far are stored, or with the error."""
        self._deletions.when_all_renamed(lambda: self._when_stored(callback))

    def _when_stored(self, callback: Callable[[OSError | None], None]) -> None:
        live = self.live_log_dirs
        remaining = len(live)
        failure: OSError | None = None

        def done(error: OSError | None) -> None:
            nonlocal remaining, failure
            remaining -= 1
            failure = failure or error
            if not remaining:
                callback(failure)

        if not live:
            callback(next((log_dir.failure for log_dir in self.log_dirs if log_dir.failure), None))
        for log_dir in live:
            log_dir.sync_queue.when_durable(done)

    # -- moves --------------------------------------------------------------------------------------------------

    def replace_current_with_future(self, topic_partition: TopicPartition) -> UnifiedLog:
        """Replace the current log by the future log and delete the old one; returns the new current log.

        Raises: KafkaError KAFKA_STORAGE_ERROR, which leaves the current log unchanged.
        """
        current, future = self._logs.get(topic_partition), self._future_logs.get(topic_partition)
        if current is None or future is None:
            which = "current" if current is None else "future"
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"The {which} replica for {topic_partition} is offline")
        self._moves.replace(current, future)
        self.cleaner.alter_checkpoint_dir(topic_partition, current.log_dir, future.log_dir)
        del self._future_logs[topic_partition]
        self._logs[topic_partition] = future
        self._configs.log_removed(topic_partition)
        self._moves.retire(current, future)
        self.checkpoint_recovery_points(future.log_dir)
        return future

    # -- deletion -----------------------------------------------------------------------------------------------

    def async_delete(
        self,
        topic_partition: TopicPartition,
        *,
        is_future: bool = False,
        on_failure: Callable[[], None] | None = None,
    ) -> UnifiedLog | None:
        """Delete a log: see `LogDeletions.delete`."""
        log = self._unregister(topic_partition, is_future=is_future)
        if log is not None:
            self._deletions.delete(log, on_failure)
        return log

    def _unregister(self, topic_partition: TopicPartition, *, is_future: bool = False) -> UnifiedLog | None:
        self._moves.finish(topic_partition)
        log = (self._future_logs if is_future else self._logs).pop(topic_partition, None)
        if log is not None:
            self.cleaner.abort(topic_partition)
            self.cleaner.checkpoints.remove(log.log_dir, topic_partition)
            self._high_watermarks.pop((log.log_dir.path, topic_partition), None)
            self._configs.log_removed(topic_partition)
        return log

    # -- truncation ---------------------------------------------------------------------------------------------

    def when_cuttable(self, log: UnifiedLog, offset: int, callback: Callable[[OSError | None], None]) -> None:
        """See `truncation.when_cuttable`. The callback gets an error if the log was closed meanwhile."""

        def cuttable(error: OSError | None) -> None:
            callback(OSError(errno.ENOENT, "the log is closed") if error is None and log.is_closed else error)

        truncation.when_cuttable(log.state, offset, partial(self.checkpoint_recovery_points, log.log_dir), cuttable)

    def truncate_to(
        self,
        offsets: Mapping[TopicPartition, int],
        *,
        is_future: bool = False,
        producers: Mapping[TopicPartition, ProducerMemory] | None = None,
    ) -> None:
        """Truncate logs and checkpoint their offsets. `producers`: from `truncation.replay_producers`."""
        for topic_partition, offset in offsets.items():
            log = self.get_log(topic_partition, is_future=is_future)
            if log is None:
                continue
            is_compacted_part_cut = offset < log.segments.active.base_offset
            if is_compacted_part_cut:
                self.cleaner.abort(topic_partition)
            if log.truncate_to(offset, (producers or {}).get(topic_partition)):
                self._checkpoint_lowered(log.log_dir)
            if is_compacted_part_cut:
                self.cleaner.truncated(log)

    def truncate_fully_and_start_at(
        self, topic_partition: TopicPartition, offset: int, *, is_future: bool = False
    ) -> None:
        log = self.get_log(topic_partition, is_future=is_future)
        if log is not None:
            self.cleaner.abort(topic_partition)
            log.truncate_fully_and_start_at(offset)
            self.cleaner.truncated(log)
            self._checkpoint_lowered(log.log_dir)

    def _checkpoint_lowered(self, log_dir: LogDir) -> None:
        """Checkpoint what a truncation or deletion lowered. A log start that is too high would hide later appends."""
        self.checkpoint_recovery_points(log_dir)
        self.checkpoint_log_start_offsets(log_dir)

    # -- checkpoints --------------------------------------------------------------------------------------------

    def checkpoint_recovery_points(self, log_dir: LogDir | None = None) -> None:
        for directory in self._dirs_or_all(log_dir):
            log_checkpoints.queue_recovery_points(directory, partial(self.logs_in, directory))

    def checkpoint_log_start_offsets(self, log_dir: LogDir | None = None) -> None:
        for directory in self._dirs_or_all(log_dir):
            log_checkpoints.queue_log_start_offsets(directory, partial(self.logs_in, directory))

    def checkpoint_high_watermarks(self) -> None:
        """Called by the replica manager every replica.high.watermark.checkpoint.interval.ms and at shutdown."""
        for directory in self.live_log_dirs:
            log_checkpoints.queue_high_watermarks(directory, partial(self.logs_in, directory))

    def _dirs_or_all(self, log_dir: LogDir | None) -> list[LogDir]:
        return self.live_log_dirs if log_dir is None else [log_dir] if log_dir.is_online else []

    # -- recurring work -------------------------------------------------------------------------------------------

    def start_background_tasks(self) -> None:
        self.sweeps.start(self.checkpoint_recovery_points, self.checkpoint_log_start_offsets, self._check_space)
        self.cleaner.startup()

    def _check_space(self) -> None:
        for log_dir in self.live_log_dirs:
            log_dir.check_space()

    def delete_old_segments(self) -> int:
        """Apply retention to all logs synchronously; returns the number of deleted segments."""
        return sum(delete_old_segments_of(log) for log in self.all_logs())

    # -- failure and shutdown ---------------------------------------------------------------------------------------

    def _on_dir_failure(self, log_dir: LogDir) -> None:
        """Unregister the logs of a failed directory; the next start loads them again.

        A partition that was being moved there keeps its current log.
        """
        self.cleaner.handle_log_dir_failure(log_dir)
        offline = [topic_partition for topic_partition, log in self._logs.items() if log.log_dir is log_dir]
        failed = self.logs_in(log_dir)
        for logs in (self._logs, self._future_logs):
            for topic_partition in [tp for tp, log in logs.items() if log.log_dir is log_dir]:
                del logs[topic_partition]
        for log in failed:
            log.discard()
        log_dir.unlock()
        if self.on_log_dir_failure is not None:
            self.on_log_dir_failure(log_dir, offline)

    def shutdown(self) -> None:
        """Flush and close all logs and write the clean-shutdown markers. Waits for the disk."""
        if self._stopped:
            return
        if not self.is_started:
            # Logs that were not loaded must not be marked as clean, and their checkpoints must not become empty.
            self._abort_startup()
            return
        self._stopped = True
        self.sweeps.stop()
        self.cleaner.shutdown()
        self._moves.finish_all()
        self._deletions.stop()
        self._creation.preparations.close()
        for log_dir in self.live_log_dirs:
            logs = self.logs_in(log_dir)
            try:
                for log in logs:
                    log.close()
                log_checkpoints.write_final(log_dir, logs, self.environment.fs)
                log_dir.mark_clean_shutdown()
            except (OSError, KafkaError) as error:
                logger.error("Log directory %s is not shut down cleanly: %s", log_dir.path, error)
        for log_dir in self.log_dirs:
            log_dir.unlock()
