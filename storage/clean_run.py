"""One compaction of one log: a job in a worker process, then the new segments put in place, group after group.

    cleaning     a worker writes `.cleaned` files
    naming       a group has become `.swap`; its directory is being synced
    swapping     (in one call) the group replaces its sources; then the next group is named, or the run ends

It can be cancelled at any time, by a call that does not wait: while cleaning, the worker is killed; while naming, the
group is put in place at once, without waiting for the disk, because `.swap` files must not outlive a change of the log
(the next start would believe them). What is `.cleaned` then is removed in the background; nobody believes that. A disk
on which there is no room for the new segments is full and no failure.

Invariants: `on_end` is called exactly once, when the run touches no file any more; groups are put in place from the
lowest offset up, so that a `.cleaned` file which a crash leaves speaks against none that is in place.

Answers to Cleaner.doClean, seen from outside, and the end of CleanerThread.cleanLog.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, assert_never

from odradek.storage.clean_job import CleanResult
from odradek.storage.disk_space import is_no_space
from odradek.storage.ports import WorkerError
from odradek.storage.segment_swap import remove_cleaned_files, rename_to_swap, replace_segments

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.storage.clean_job import CleanedGroup, CleanJob
    from odradek.storage.environment import Environment
    from odradek.storage.ports import WorkerJob
    from odradek.storage.segment import LogSegment
    from odradek.storage.unified_log import UnifiedLog

    CleanLog = Callable[[CleanJob, Callable[[object], None]], CleanResult]

logger = logging.getLogger(__name__)


class CleanRun:
    """A compaction under way."""

    __slots__ = (
        "_environment",
        "_groups",
        "_on_end",
        "_swapping",
        "_worker_job",
        "error",
        "is_cancelled",
        "job",
        "log",
        "result",
    )

    def __init__(
        self, log: UnifiedLog, job: CleanJob, environment: Environment, on_end: Callable[[CleanRun], None]
    ) -> None:
        self.log = log
        self.job = job
        self.is_cancelled = False
        self.result: CleanResult | None = None
        """What was put in place; None while that is not so, or it came to nothing."""
        self.error: WorkerError | None = None
        """A bug, or a worker that died."""
        self._environment = environment
        self._on_end = on_end
        self._worker_job: WorkerJob | None = None
        self._groups: deque[CleanedGroup] = deque()
        self._swapping: tuple[CleanedGroup, list[LogSegment]] | None = None

    def start(self, clean_log: CleanLog) -> None:
        self._worker_job = self._environment.workers.submit(clean_log, self.job, self._cleaned)

    def cancel(self) -> None:
        """Let go of the log. What has been put in place stays."""
        if self.is_cancelled:
            return
        self.is_cancelled = True
        if self._swapping is not None:
            self._put_in_place()
        elif self._worker_job is not None:
            self._worker_job.cancel()

    def _cleaned(self, result: CleanResult | OSError | WorkerError) -> None:
        self._worker_job = None
        if self.is_cancelled:
            self._end()
            return
        match result:
            case CleanResult():
                self._groups.extend(result.groups)
                self._name_next(result)
            case OSError() if is_no_space(result):
                self.log.log_dir.space.ran_out(result)
                self._end()
            case OSError():
                self._fail(result)
            case WorkerError():
                self.error = result
                self._end()
            case _:
                assert_never(result)

    def _name_next(self, result: CleanResult) -> None:
        if self.is_cancelled or not self._groups:
            self.result = None if self.is_cancelled else result
            self._end()
            return
        group = self._groups.popleft()
        log = self.log
        try:
            new = rename_to_swap(log.dir, [group.base_offset], log.config, self._environment)
        except OSError as error:
            self._fail(error)
            return
        self._swapping = group, new
        log.log_dir.sync_queue.sync_dir(log.dir)
        log.log_dir.sync_queue.when_durable(lambda _: self._named(result))

    def _named(self, result: CleanResult) -> None:
        if self._swapping is not None:
            self._put_in_place()
        # Not at once: there may be many groups, and the loop has other things to do.
        self._environment.timer.schedule(0, lambda: self._name_next(result))

    def _put_in_place(self) -> None:
        assert self._swapping is not None
        (group, new), self._swapping = self._swapping, None
        if not self.log.log_dir.is_online:
            self.is_cancelled = True
            return
        try:
            replace_segments(self.log, new, group.source_base_offsets)
        except OSError as error:
            self.is_cancelled = True
            self._take_offline(error)

    def _fail(self, error: OSError) -> None:
        self._take_offline(error)
        self._end()

    def _take_offline(self, error: OSError) -> None:
        log_dir = self.log.log_dir
        log_dir.fail(f"Failed to clean up log for {self.job.topic_partition} in dir {log_dir.path}", error)

    def _end(self) -> None:
        directory, fs = self.log.dir, self._environment.fs
        if self.result is not None or not self.log.log_dir.is_online:
            self._on_end(self)
            return

        def removed(result: OSError | None) -> None:
            if isinstance(result, OSError):
                logger.warning("Could not remove what an unfinished compaction left in %s: %s", directory, result)
            self._on_end(self)

        self._environment.io_pool.submit(lambda: remove_cleaned_files(directory, fs), removed)
