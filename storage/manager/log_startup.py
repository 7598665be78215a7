"""Loads all logs at start: those that need a long scan in worker processes, the others on the event loop.

    in the I/O pool    the file parts that opening a log reads are read ahead of its opening (`log_warming`)
    on the loop        logs that were stopped cleanly, and those with at most `INLINE_SCAN_BYTES` to scan, are opened
    in a worker        the other logs are recovered, `num.recovery.threads.per.data.dir` at a time in each directory;
                       then they are opened on the loop, without a scan

The event loop runs other callbacks every `SLICE_MS`, so that a recovery of minutes does not block signals.

An I/O error in one log fails its directory, after all its logs were tried. An unrepairable log, a directory that is no
log's, or the death of a worker refuses the start, as an exception in one of Apache's loading threads does.

Invariants: `done` is called once, and nothing is loaded afterwards; a log is accessed by a worker or by the loop, never
by both; after `cancel` nothing is called.

Kafka: LogManager.loadLogs.
"""

from __future__ import annotations

import logging
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Final, Protocol

from odradek.storage import log_files
from odradek.storage.disk.log_dir import LogDirError
from odradek.storage.disk.ports import InlineIoPool, WorkerError
from odradek.storage.manager.log_loading import open_log, stored_logs, take_last_stop
from odradek.storage.manager.log_warming import warm_data_dirs, warm_log_dirs
from odradek.storage.recovery.recovery_job import RecoveryJob, RecoveryProgress, Unloadable, bytes_to_scan, recover_log
from odradek.timer.periodic import PeriodicTask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from odradek.storage.config.log_config import LogConfig
    from odradek.storage.disk.environment import Environment
    from odradek.storage.disk.log_dir import LogDir
    from odradek.storage.disk.ports import IoPool, WorkerJob
    from odradek.storage.log.unified_log import UnifiedLog
    from odradek.storage.manager.log_deletions import LogDeletions
    from odradek.storage.manager.log_loading import LastStop, StoredLog
    from odradek.storage.producers.producer_state_manager import ProducerMemory

INLINE_SCAN_BYTES: Final = 256 * 1024
"""The scan on the loop takes at most a few milliseconds, the most for batches of one small record (1.2 us each)."""

SLICE_MS: Final = 10
"""The time for opening logs before the loop runs other callbacks. A log that was stopped cleanly takes about 0.2 ms."""

LOGS_PER_WARM_CALL: Final = 64
"""The logs that one call in the I/O pool warms; at most `WARM_CALLS_MAX` calls run at a time."""
WARM_CALLS_MAX: Final = 2

PROGRESS_INTERVAL_MS: Final = 5_000
_UNBOUNDED_MS: Final = 2**62

logger = logging.getLogger(__name__)


class LogsOwner(Protocol):
    """The log manager, as the start uses it."""

    def config_of(self, topic: str) -> LogConfig: ...

    def keep_high_watermarks(self, log_dir: LogDir, last_stop: LastStop) -> None: ...

    def register(self, log: UnifiedLog, *, is_future: bool) -> None:
        """Raises LogDirError for a second log of a partition."""

    def checkpoint_recovery_points(self, log_dir: LogDir) -> None: ...

    @property
    def deletions(self) -> LogDeletions: ...

    def require_a_live_dir(self) -> None:
        """Raises LogDirError when all directories have failed."""


class _Recovery:
    """A log that a worker recovers, or that waits for a worker."""

    __slots__ = ("bytes_done", "job", "segments_remaining", "size", "stored")

    def __init__(self, stored: StoredLog, size: int) -> None:
        self.stored = stored
        self.size = size
        self.bytes_done = 0
        self.segments_remaining = 0
        self.job: WorkerJob | None = None


class _Directory:
    """The progress of loading one directory."""

    __slots__ = (
        "failure",
        "last_stop",
        "loaded",
        "log_dir",
        "needs_checkpoint",
        "recovered_bytes",
        "running",
        "total",
        "waiting",
    )

    def __init__(self, log_dir: LogDir, last_stop: LastStop) -> None:
        self.log_dir = log_dir
        self.last_stop = last_stop
        self.total = 0
        self.loaded = 0
        self.recovered_bytes = 0
        self.waiting: deque[_Recovery] = deque()
        self.running: set[_Recovery] = set()
        self.failure: OSError | None = None
        self.needs_checkpoint = False
        """Whether a checkpointed recovery point is above the log's present one, so that a new checkpoint is needed."""

    @property
    def is_untouched(self) -> bool:
        """Whether the directory was stopped cleanly and no recovery runs in it."""
        return self.last_stop.was_clean and self.failure is None and not self.running

    def progress(self, elapsed_ms: int) -> str:
        """A log line with the remaining logs, segments and seconds."""
        done_bytes = self.recovered_bytes + sum(recovery.bytes_done for recovery in self.running)
        total_bytes = self.recovered_bytes + sum(recovery.size for recovery in [*self.running, *self.waiting])
        text = f"Loading logs from {self.log_dir.path}: {self.total - self.loaded} of {self.total} logs remain"
        for recovery in self.running:
            text += f", {recovery.segments_remaining} segments of {recovery.stored.topic_partition}"
        if done_bytes:
            seconds = elapsed_ms * max(0, total_bytes - done_bytes) // done_bytes // 1000
            text += f"; recovered {done_bytes // 10**6} of {total_bytes // 10**6} MB, about {seconds} s left"
        return text


class LogStartup:
    """One start: `begin` loads the logs, then `done` gets None, or the error that refuses the start."""

    def __init__(
        self,
        owner: LogsOwner,
        environment: Environment,
        recovery_threads_per_data_dir: int,
        done: Callable[[BaseException | None], None],
    ) -> None:
        self._owner = owner
        self._environment = environment
        self._threads = recovery_threads_per_data_dir
        self._io_pool: IoPool = environment.io_pool
        self._done: Callable[[BaseException | None], None] | None = done
        self._directories: list[_Directory] = []
        self._found: deque[tuple[_Directory, StoredLog]] = deque()
        """Found logs that are not warmed yet."""
        self._warm_calls = 0
        self._to_open: deque[tuple[_Directory, StoredLog, ProducerMemory | None]] = deque()
        """Logs to open: warmed ones, and recovered ones with the worker's producer state."""
        self._slice_ms = _UNBOUNDED_MS
        self._started_ms = 0
        self._progress = PeriodicTask(
            environment.timer, "progress of the start", PROGRESS_INTERVAL_MS, self._log_progress
        )
        self._is_loading = False
        self._is_between_slices = False

    def begin(self, log_dirs: Sequence[LogDir], *, slice_ms: int = SLICE_MS) -> None:
        """Load the logs in the directories. With an unlimited `slice_ms`, returns only after all are loaded."""
        self._slice_ms = slice_ms
        if slice_ms >= _UNBOUNDED_MS:
            self._io_pool = InlineIoPool()
        self._started_ms = self._environment.clock.monotonic_ms()
        logger.info("Loading logs from log dirs %s", [log_dir.path for log_dir in log_dirs])
        self._io_pool.submit(
            partial(warm_data_dirs, [log_dir.path for log_dir in log_dirs]), lambda _: self._list_all_logs(log_dirs)
        )

    def _list_all_logs(self, log_dirs: Sequence[LogDir]) -> None:
        self._list_slice(step for log_dir in log_dirs for step in self._list_logs(log_dir))

    def _list_slice(self, steps: Iterator[None]) -> None:
        """List logs for one slice, then schedule the next slice; when all logs are listed, begin to open them."""
        if self._done is None:
            return
        clock = self._environment.clock
        deadline_ms = clock.monotonic_ms() + self._slice_ms
        try:
            for _ in steps:
                if clock.monotonic_ms() >= deadline_ms:
                    self._environment.timer.schedule(1, partial(self._list_slice, steps))
                    return
        except LogDirError as error:
            self._end_startup(error)
            return
        except BaseException as error:
            self._end_startup(error)  # a bug: `done` must get it, whoever called this
            raise
        self._progress.start()
        self._load_slice()

    def cancel(self) -> None:
        """Cancel the start. Directories that are still cleanly stopped get the marker of a clean stop again."""
        self._done = None
        self._progress.cancel()
        for directory in self._directories:
            for recovery in directory.running:
                if recovery.job is not None:
                    recovery.job.cancel()
            if directory.is_untouched and directory.log_dir.is_online:
                try:
                    directory.log_dir.mark_clean_shutdown()
                except OSError as error:
                    path = directory.log_dir.path
                    logger.warning("The next start will recover the logs in %s: %s", path, error)

    def _list_logs(self, log_dir: LogDir) -> Iterator[None]:
        """List the logs of a directory; yields after each step."""
        try:
            last_stop = take_last_stop(log_dir)
            directory = _Directory(log_dir, last_stop)
            self._directories.append(directory)
            self._owner.keep_high_watermarks(log_dir, last_stop)
            yield
            found = []
            for stored in stored_logs(log_dir):
                found.append((directory, stored))
                yield
        except OSError as error:
            log_dir.fail("Error while loading log dir", error)
            return
        directory.total = len(found)
        self._found += found
        if not found:
            logger.info("No logs found to be loaded in %s", log_dir.path)
        elif last_stop.was_clean:
            logger.info(
                "Skipping recovery of %d logs from %s since clean shutdown file was found", len(found), log_dir.path
            )
        else:
            logger.info("Recovering %d logs from %s since no clean shutdown file was found", len(found), log_dir.path)

    # -- loading -----------------------------------------------------------------------------------------------

    def _load_slice(self) -> None:
        """Open logs and submit recoveries for one slice, then schedule the next slice.

        Only one slice is scheduled at a time: a recovery that ends meanwhile adds its log to the next one.
        """
        if self._is_between_slices or self._is_loading:  # loading: an inline worker of tests ends within `submit`
            return
        self._is_loading = True
        clock = self._environment.clock
        deadline_ms = clock.monotonic_ms() + self._slice_ms
        try:
            while self._done is not None and self._load_next():
                if clock.monotonic_ms() >= deadline_ms:
                    self._is_between_slices = True
                    self._environment.timer.schedule(1, self._next_slice)
                    return
        except LogDirError as error:
            self._end_startup(error)
        except BaseException as error:
            self._end_startup(error)  # a bug: `done` must get it, whoever called this
            raise
        finally:
            self._is_loading = False
        is_waiting = self._warm_calls or any(directory.running for directory in self._directories)
        if not (self._found or self._to_open or is_waiting):
            self._end_startup(None)

    def _next_slice(self) -> None:
        self._is_between_slices = False
        self._load_slice()

    def _load_next(self) -> bool:
        """Open one log or submit one recovery; False when nothing is ready."""
        self._warm_next_logs()
        if self._to_open:
            directory, stored, recovered = self._to_open.popleft()
            if recovered is None:
                self._open_or_queue_recovery(directory, stored)
            else:
                self._open_log(directory, stored, recovered)
            return True
        for directory in self._directories:
            if directory.waiting and len(directory.running) < self._threads:
                self._submit_recovery(directory, directory.waiting.popleft())
                return True
        return False

    def _warm_next_logs(self) -> None:
        """Submit calls that warm the next logs, if too few are ready."""
        while self._found and self._warm_calls < WARM_CALLS_MAX and len(self._to_open) <= LOGS_PER_WARM_CALL:
            some = [self._found.popleft() for _ in range(min(LOGS_PER_WARM_CALL, len(self._found)))]
            self._warm_calls += 1
            self._io_pool.submit(
                partial(warm_log_dirs, [stored.path for _, stored in some]), partial(self._on_warmed, some)
            )

    def _on_warmed(self, some: Sequence[tuple[_Directory, StoredLog]], _: object) -> None:
        self._warm_calls -= 1
        if self._done is not None:
            self._to_open += [(directory, stored, None) for directory, stored in some]
            self._load_slice()

    def _open_or_queue_recovery(self, directory: _Directory, stored: StoredLog) -> None:
        if stored.marker == log_files.DELETE_DIR_SUFFIX:
            self._owner.deletions.remove_later(stored.path, directory.log_dir)
            directory.loaded += 1
            return
        if stored.marker == log_files.STRAY_DIR_SUFFIX:
            logger.warning("Ignoring the stray log directory %s", stored.path)
            directory.loaded += 1
            return
        stop = directory.last_stop
        try:
            size = bytes_to_scan(
                stored.path,
                stop.recovery_points.get(stored.topic_partition, 0),
                had_clean_shutdown=stop.was_clean,
            )
        except OSError as error:
            self._on_load_error(directory, stored, error)
            return
        if size > INLINE_SCAN_BYTES:
            directory.waiting.append(_Recovery(stored, size))
        else:
            self._open_log(directory, stored, None)

    def _open_log(self, directory: _Directory, stored: StoredLog, recovered: ProducerMemory | None) -> None:
        """Open a log on the event loop. Raises LogDirError."""
        clock = self._environment.clock
        started_ms = clock.monotonic_ms()
        try:
            log = open_log(
                stored.path,
                stored.topic_partition,
                self._owner.config_of(stored.topic_partition.topic),
                directory.log_dir,
                self._environment,
                last_stop=directory.last_stop,
                recovered=recovered,
            )
        except OSError as error:
            self._on_load_error(directory, stored, error)
            return
        directory.loaded += 1
        logger.log(
            logging.DEBUG if recovered is None else logging.INFO,
            "Completed load of %s with %d segments in %d ms (%d/%d completed in %s)",
            log,
            len(log.segments),
            clock.monotonic_ms() - started_ms,
            directory.loaded,
            directory.total,
            directory.log_dir.path,
        )
        if not directory.log_dir.is_online:
            log.discard()
        else:
            self._owner.register(log, is_future=stored.marker == log_files.FUTURE_DIR_SUFFIX)
            last_recovery_point = directory.last_stop.recovery_points.get(log.topic_partition, 0)
            directory.needs_checkpoint |= log.flusher.checkpoint_offset < last_recovery_point

    def _on_load_error(self, directory: _Directory, stored: StoredLog, error: OSError) -> None:
        directory.loaded += 1
        logger.error("Error while loading log %s: %s", stored.path, error)
        directory.failure = directory.failure or error

    def _submit_recovery(self, directory: _Directory, recovery: _Recovery) -> None:
        stored, stop = recovery.stored, directory.last_stop
        directory.running.add(recovery)

        def done(result: ProducerMemory | Unloadable | OSError | WorkerError) -> None:
            directory.running.discard(recovery)
            if self._done is not None:
                self._on_recovered(directory, recovery, result)

        def on_report(progress: object) -> None:
            assert isinstance(progress, RecoveryProgress)
            recovery.segments_remaining = progress.segments_remaining
            recovery.bytes_done += progress.scanned_bytes

        recovery.job = self._environment.workers.submit(
            recover_log,
            RecoveryJob(
                path=stored.path,
                topic_partition=stored.topic_partition,
                config=self._owner.config_of(stored.topic_partition.topic),
                log_start_offset=stop.log_start_offsets.get(stored.topic_partition, 0),
                recovery_point=stop.recovery_points.get(stored.topic_partition, 0),
                first_dirty_offset=stop.first_dirty_offsets.get(stored.topic_partition, 0),
                had_clean_shutdown=stop.was_clean,
                producer_id_expiration_ms=self._environment.producers.producer_id_expiration_ms,
            ),
            done,
            on_report,
        )

    def _on_recovered(
        self,
        directory: _Directory,
        recovery: _Recovery,
        result: ProducerMemory | Unloadable | OSError | WorkerError,
    ) -> None:
        directory.recovered_bytes += recovery.size
        if isinstance(result, OSError):
            self._on_load_error(directory, recovery.stored, result)
        elif isinstance(result, Unloadable | WorkerError):
            reason = result.reason if isinstance(result, Unloadable) else result
            self._end_startup(LogDirError(f"The log in {recovery.stored.path} cannot be loaded: {reason}"))
            return
        else:
            self._to_open.append((directory, recovery.stored, result))
        self._load_slice()

    # -- progress and end ---------------------------------------------------------------------------------------

    def _log_progress(self) -> None:
        elapsed_ms = self._environment.clock.monotonic_ms() - self._started_ms
        for directory in self._directories:
            if directory.loaded < directory.total:
                logger.info("%s", directory.progress(elapsed_ms))

    def _end_startup(self, error: BaseException | None) -> None:
        self._progress.cancel()
        done, self._done = self._done, None
        if done is None:
            return
        if error is None:
            for directory in self._directories:
                if directory.failure is not None:
                    directory.log_dir.fail("Error while loading log dir", directory.failure)
                elif directory.needs_checkpoint and directory.log_dir.is_online:
                    self._owner.checkpoint_recovery_points(directory.log_dir)
            logger.info(
                "Loaded %d logs in %d ms%s",
                sum(directory.total for directory in self._directories),
                self._environment.clock.monotonic_ms() - self._started_ms,
                self._unclean_suffix(),
            )
            try:
                self._owner.require_a_live_dir()
            except LogDirError as none_left:
                error = none_left
        done(error)

    def _unclean_suffix(self) -> str:
        unclean = [d.log_dir.path for d in self._directories if d.total and not d.last_stop.was_clean]
        return f" (unclean log dirs = {unclean})" if unclean else ""
