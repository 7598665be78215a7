"""Loading all logs at start: those that need a scan in worker processes, the others on the loop, a few at a time.

    on the loop        logs that were stopped cleanly, and those with less than `INLINE_SCAN_BYTES` to scan
    in a worker        the others, `num.recovery.threads.per.data.dir` at a time in each directory; then opened on the
                       loop, where nothing is left to scan
    in the I/O pool    first of all, what is read of a log to open it is brought into memory (`log_warming`), for some
                       logs ahead of those that are opened

The loop is let go on every few milliseconds, so that signals are heard during a recovery that takes minutes.

An I/O error in one log fails its directory, once all its logs have been tried; a log that contradicts itself, a
directory that is no log's, a worker that dies: any of these refuses the start, as an exception in one of Apache's
loading threads does.

Invariants: `done` is called once, after which nothing more is loaded; a log is touched by a worker or by the loop,
never by both; after `cancel` nothing is called.

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
from odradek.storage.manager.log_warming import warm_dirs
from odradek.storage.recovery.recovery_job import RecoveryJob, RecoveryProgress, Unloadable, bytes_to_scan, recover_log
from odradek.timer.periodic import PeriodicTask

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from odradek.storage.config.log_config import LogConfig
    from odradek.storage.disk.environment import Environment
    from odradek.storage.disk.log_dir import LogDir
    from odradek.storage.disk.ports import IoPool, WorkerJob
    from odradek.storage.log.unified_log import UnifiedLog
    from odradek.storage.manager.log_loading import LastStop, StoredLog
    from odradek.storage.producers.producer_state_manager import ProducerMemory

INLINE_SCAN_BYTES: Final = 256 * 1024
"""Scanned on the loop: at most a few milliseconds, the worst being batches of one small record (1.2 us each)."""

SLICE_MS: Final = 10
"""For so long logs are opened before the loop goes on; a log that was stopped cleanly takes about 0.2 ms."""

LOGS_AHEAD: Final = 64
"""Logs that one call in the I/O pool brings into memory; there are `CALLS_AHEAD` of them at a time."""
CALLS_AHEAD: Final = 2

PROGRESS_INTERVAL_MS: Final = 5_000
_UNBOUNDED_MS: Final = 2**62

logger = logging.getLogger(__name__)


class LogsOwner(Protocol):
    """What becomes of the logs: the log manager."""

    def config_of(self, topic: str) -> LogConfig: ...

    def take_over_last_stop(self, log_dir: LogDir, last_stop: LastStop) -> None: ...

    def register(self, log: UnifiedLog, *, is_future: bool) -> None:
        """Raises LogDirError when there is a log of that partition already."""

    def checkpoint_recovery_points(self, log_dir: LogDir) -> None: ...

    def remove_dir_later(self, path: str, log_dir: LogDir, delay_ms: int) -> None: ...

    def require_a_live_dir(self) -> None:
        """Raises LogDirError when all have failed."""


class _Recovery:
    """A log that is being recovered in a worker, or waits for it."""

    __slots__ = ("bytes_done", "job", "segments_remaining", "size", "stored")

    def __init__(self, stored: StoredLog, size: int) -> None:
        self.stored = stored
        self.size = size
        self.bytes_done = 0
        self.segments_remaining = 0
        self.job: WorkerJob | None = None


class _Directory:
    """How far the loading of one directory has come."""

    __slots__ = (
        "failure",
        "has_shorter_logs",
        "last_stop",
        "loaded",
        "log_dir",
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
        self.has_shorter_logs = False
        """Whether the last checkpoint of recovery points promises more than there is."""

    @property
    def is_untouched(self) -> bool:
        """Stopped cleanly, and nothing has been begun that would have to be finished first."""
        return self.last_stop.was_clean and self.failure is None and not self.running

    def progress(self, elapsed_ms: int) -> str:
        """One line on what is done and what remains, for an operator who waits."""
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
    """One start: `begin`, and then `done` is called with None or with what refuses the start."""

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
        """Not looked into yet."""
        self._calls_ahead = 0
        self._to_open: deque[tuple[_Directory, StoredLog, ProducerMemory | None]] = deque()
        """In memory. And what a worker has left that has recovered the log."""
        self._slice_ms = _UNBOUNDED_MS
        self._started_ms = 0
        self._progress = PeriodicTask(
            environment.timer, "progress of the start", PROGRESS_INTERVAL_MS, self._tell_progress
        )
        self._is_working = False
        self._is_between_slices = False

    def begin(self, log_dirs: Sequence[LogDir], *, slice_ms: int = SLICE_MS) -> None:
        """Look at the directories and load what is in them; in slices without an end the caller waits for it all."""
        self._slice_ms = slice_ms
        if slice_ms >= _UNBOUNDED_MS:
            self._io_pool = InlineIoPool()
        self._started_ms = self._environment.clock.monotonic_ms()
        logger.info("Loading logs from log dirs %s", [log_dir.path for log_dir in log_dirs])
        self._io_pool.submit(
            partial(warm_dirs, [log_dir.path for log_dir in log_dirs]), lambda _: self._look_into_all(log_dirs)
        )

    def _look_into_all(self, log_dirs: Sequence[LogDir]) -> None:
        self._look_on(step for log_dir in log_dirs for step in self._look_into(log_dir))

    def _look_on(self, steps: Iterator[None]) -> None:
        """Look for the time of a slice, and then let the loop go on; begin to open logs when all have been found."""
        if self._done is None:
            return
        clock = self._environment.clock
        deadline_ms = clock.monotonic_ms() + self._slice_ms
        try:
            for _ in steps:
                if clock.monotonic_ms() >= deadline_ms:
                    self._environment.timer.schedule(1, partial(self._look_on, steps))
                    return
        except LogDirError as error:
            self._finish(error)
            return
        except BaseException as error:
            self._finish(error)  # a bug: who waits for the start is to hear of it, whatever called this
            raise
        self._progress.start()
        self._work()

    def cancel(self) -> None:
        """Give up. A directory that was stopped cleanly is as it was then, and is said to be."""
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

    def _look_into(self, log_dir: LogDir) -> Iterator[None]:
        """Find the logs of a directory, one a step."""
        try:
            last_stop = take_last_stop(log_dir)
            directory = _Directory(log_dir, last_stop)
            self._directories.append(directory)
            self._owner.take_over_last_stop(log_dir, last_stop)
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

    # -- doing -------------------------------------------------------------------------------------------------

    def _work(self) -> None:
        """Open logs and hand out recoveries for a while, then let the loop go on.

        One slice follows another, however many recoveries end meanwhile: they add to what the next one does.
        """
        if self._is_between_slices or self._is_working:  # at work: a worker of the tests, which is done at once
            return
        self._is_working = True
        clock = self._environment.clock
        deadline_ms = clock.monotonic_ms() + self._slice_ms
        try:
            while self._done is not None and self._do_one():
                if clock.monotonic_ms() >= deadline_ms:
                    self._is_between_slices = True
                    self._environment.timer.schedule(1, self._next_slice)
                    return
        except LogDirError as error:
            self._finish(error)
        except BaseException as error:
            self._finish(error)  # a bug: who waits for the start is to hear of it, whatever called this
            raise
        finally:
            self._is_working = False
        is_waiting = self._calls_ahead or any(directory.running for directory in self._directories)
        if not (self._found or self._to_open or is_waiting):
            self._finish(None)

    def _next_slice(self) -> None:
        self._is_between_slices = False
        self._work()

    def _do_one(self) -> bool:
        """Open one log or begin one recovery; False when there is nothing to be done now."""
        self._look_ahead()
        if self._to_open:
            directory, stored, recovered = self._to_open.popleft()
            if recovered is None:
                self._begin_log(directory, stored)
            else:
                self._open(directory, stored, recovered)
            return True
        for directory in self._directories:
            if directory.waiting and len(directory.running) < self._threads:
                self._recover(directory, directory.waiting.popleft())
                return True
        return False

    def _look_ahead(self) -> None:
        """Have some logs brought into memory, if there are not enough of them."""
        while self._found and self._calls_ahead < CALLS_AHEAD and len(self._to_open) <= LOGS_AHEAD:
            some = [self._found.popleft() for _ in range(min(LOGS_AHEAD, len(self._found)))]
            self._calls_ahead += 1
            self._io_pool.submit(
                partial(warm_dirs, [stored.path for _, stored in some]), partial(self._looked_ahead, some)
            )

    def _looked_ahead(self, some: Sequence[tuple[_Directory, StoredLog]], _: object) -> None:
        self._calls_ahead -= 1
        if self._done is not None:
            self._to_open += [(directory, stored, None) for directory, stored in some]
            self._work()

    def _begin_log(self, directory: _Directory, stored: StoredLog) -> None:
        if stored.marker == log_files.DELETE_DIR_SUFFIX:
            delay_ms = self._owner.config_of(stored.topic_partition.topic).file_delete_delay_ms
            self._owner.remove_dir_later(stored.path, directory.log_dir, delay_ms)
            directory.loaded += 1
            return
        if stored.marker == log_files.STRAY_DIR_SUFFIX:
            logger.warning("Ignoring %s, which was set aside as stray", stored.path)
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
            self._failed(directory, stored, error)
            return
        if size > INLINE_SCAN_BYTES:
            directory.waiting.append(_Recovery(stored, size))
        else:
            self._open(directory, stored, None)

    def _open(self, directory: _Directory, stored: StoredLog, recovered: ProducerMemory | None) -> None:
        """Open a log on the loop. Raises LogDirError."""
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
            self._failed(directory, stored, error)
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
            directory.has_shorter_logs |= log.flusher.checkpoint_offset < last_recovery_point

    def _failed(self, directory: _Directory, stored: StoredLog, error: OSError) -> None:
        directory.loaded += 1
        logger.error("Error while loading log %s: %s", stored.path, error)
        directory.failure = directory.failure or error

    def _recover(self, directory: _Directory, recovery: _Recovery) -> None:
        stored, stop = recovery.stored, directory.last_stop
        directory.running.add(recovery)

        def done(result: ProducerMemory | Unloadable | OSError | WorkerError) -> None:
            directory.running.discard(recovery)
            if self._done is not None:
                self._recovered(directory, recovery, result)

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
                had_clean_shutdown=stop.was_clean,
                producer_id_expiration_ms=self._environment.producers.producer_id_expiration_ms,
            ),
            done,
            on_report,
        )

    def _recovered(
        self,
        directory: _Directory,
        recovery: _Recovery,
        result: ProducerMemory | Unloadable | OSError | WorkerError,
    ) -> None:
        directory.recovered_bytes += recovery.size
        if isinstance(result, OSError):
            self._failed(directory, recovery.stored, result)
        elif isinstance(result, Unloadable | WorkerError):
            reason = result.reason if isinstance(result, Unloadable) else result
            self._finish(LogDirError(f"The log in {recovery.stored.path} cannot be loaded: {reason}"))
            return
        else:
            self._to_open.append((directory, recovery.stored, result))
        self._work()

    # -- telling ------------------------------------------------------------------------------------------------

    def _tell_progress(self) -> None:
        elapsed_ms = self._environment.clock.monotonic_ms() - self._started_ms
        for directory in self._directories:
            if directory.loaded < directory.total:
                logger.info("%s", directory.progress(elapsed_ms))

    def _finish(self, error: BaseException | None) -> None:
        self._progress.cancel()
        done, self._done = self._done, None
        if done is None:
            return
        if error is None:
            for directory in self._directories:
                if directory.failure is not None:
                    directory.log_dir.fail("Error while loading log dir", directory.failure)
                elif directory.has_shorter_logs and directory.log_dir.is_online:
                    self._owner.checkpoint_recovery_points(directory.log_dir)
            logger.info(
                "Loaded %d logs in %d ms%s",
                sum(directory.total for directory in self._directories),
                self._environment.clock.monotonic_ms() - self._started_ms,
                self._unclean(),
            )
            try:
                self._owner.require_a_live_dir()
            except LogDirError as none_left:
                error = none_left
        done(error)

    def _unclean(self) -> str:
        unclean = [d.log_dir.path for d in self._directories if d.total and not d.last_stop.was_clean]
        return f" (unclean log dirs = {unclean})" if unclean else ""
