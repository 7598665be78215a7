"""One compaction of one log: a job in a worker process, then the replacement of segments, one group after another.

    cleaning     a worker writes `.cleaned` files
    renaming     the new segments of a group are renamed to `.swap`; the directory is being synced
    swapping     (in one call) they replace their sources; then the next group is renamed, or the run ends
    splitting    a worker writes the parts of a segment whose offsets overflow; they replace it in the same way, and
                 another run compacts the log

`cancel` works at any time and does not wait: it kills the worker; a group that is renamed to `.swap` is put in place at
once, without waiting for the sync, because the next start would put these `.swap` files in place even after the log had
changed. `.cleaned` files are removed in the background; a start ignores them. If the new segments find no space, the
directory is full, not failed.

Invariants: `on_end` is called exactly once, when the run has left no `.cleaned` file and changes no file any more;
groups are put in place from the lowest offset up, so that a `.cleaned` file that a crash leaves is above all of them.

Kafka: Cleaner.doClean, CleanerThread.cleanLog.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from odradek.storage.disk.disk_space import is_no_space
from odradek.storage.disk.ports import WorkerError
from odradek.storage.log.segment_swap import remove_cleaned_files, rename_to_swap, replace_segments
from odradek.storage.segment.segment_split import SplitJob, split_in_worker

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.storage.cleaning.clean_job import CleanJob, CleanResult
    from odradek.storage.disk.environment import Environment
    from odradek.storage.disk.ports import WorkerJob
    from odradek.storage.log.unified_log import UnifiedLog
    from odradek.storage.segment.log_segment import LogSegment

    CleanLog = Callable[[CleanJob, Callable[[object], None]], CleanResult]

ArgumentT = TypeVar("ArgumentT")
ResultT = TypeVar("ResultT")

logger = logging.getLogger(__name__)


class Replacement(NamedTuple):
    """The base offsets of new segments and of the segments that they replace."""

    new: tuple[int, ...]
    sources: tuple[int, ...]


class CleanRun:
    """A running compaction."""

    __slots__ = (
        "_environment",
        "_has_ended",
        "_on_end",
        "_outcome",
        "_replacements",
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
        """The result after all groups are in place; None before, and for a run without a result."""
        self.error: WorkerError | None = None
        """A bug, or the death of the worker."""
        self._environment = environment
        self._on_end = on_end
        self._has_ended = False
        self._worker_job: WorkerJob | None = None
        self._outcome: CleanResult | None = None
        """The result of the worker; None for a split."""
        self._replacements: deque[Replacement] = deque()
        self._swapping: tuple[Replacement, list[LogSegment]] | None = None

    def start(self, clean_log: CleanLog) -> None:
        self._submit(clean_log, self.job, self._cleaned)

    def cancel(self) -> None:
        """Stop the run; the caller may change the log afterwards. Segments that are in place stay."""
        if self.is_cancelled:
            return
        self.is_cancelled = True
        if self._swapping is not None:
            self._put_in_place()
        elif self._worker_job is not None:
            self._worker_job.cancel()

    # -- in the worker -----------------------------------------------------------------------------------

    def _submit(
        self,
        work: Callable[[ArgumentT, Callable[[object], None]], ResultT],
        argument: ArgumentT,
        done: Callable[[ResultT], None],
    ) -> None:
        def ended(result: ResultT | OSError | WorkerError) -> None:
            self._worker_job = None
            self._step(lambda: go_on(result))

        def go_on(result: ResultT | OSError | WorkerError) -> None:
            if self.is_cancelled:
                self._end()
            elif isinstance(result, WorkerError):
                self.error = result
                self._end()
            elif isinstance(result, OSError):
                if is_no_space(result):
                    self.log.log_dir.space.ran_out(result)
                else:
                    self._fail(result)
                self._end()
            else:
                done(result)

        self._worker_job = self._environment.workers.submit(work, argument, ended)

    def _cleaned(self, result: CleanResult) -> None:
        split = result.split
        if split is not None:
            # The `.cleaned` files first: they lie below the parts, see the invariants.
            self._remove_cleaned_files(lambda: self._split(split.base_offset))
            return
        self._outcome = result
        for group in result.groups:
            self._replacements.append(Replacement((group.base_offset,), group.source_base_offsets))
        self._rename_next()

    def _split(self, base_offset: int) -> None:
        def written(parts: list[int]) -> None:
            self._replacements.append(Replacement(tuple(parts), (base_offset,)))
            self._rename_next()

        if self.is_cancelled:
            self._end()
            return
        job = SplitJob(directory=self.log.dir, base_offset=base_offset, config=self.log.config)
        self._submit(split_in_worker, job, written)

    # -- replacing segments ------------------------------------------------------------------------------

    def _rename_next(self) -> None:
        if self.is_cancelled:
            self._end()
            return
        if not self._replacements:
            self.result = self._outcome
            self._finish()
            return
        replacement = self._replacements.popleft()
        log = self.log
        try:
            new = rename_to_swap(log.dir, replacement.new, log.config, self._environment)
        except OSError as error:
            self._fail(error)
            self._end()
            return
        self._swapping = replacement, new
        log.log_dir.sync_queue.sync_dir(log.dir)
        log.log_dir.sync_queue.when_durable(lambda _: self._step(self._renamed))

    def _renamed(self) -> None:
        if self._swapping is not None:
            self._put_in_place()
        # In a callback of its own: there may be many groups, and the event loop must not be blocked.
        self._environment.timer.schedule(0, lambda: self._step(self._rename_next))

    def _put_in_place(self) -> None:
        assert self._swapping is not None
        (replacement, new), self._swapping = self._swapping, None
        if not self.log.log_dir.is_online:
            self.is_cancelled = True
            return
        try:
            replace_segments(self.log.state, new, replacement.sources)
        except OSError as error:
            self.is_cancelled = True
            self._fail(error)

    # -- the end -----------------------------------------------------------------------------------------

    def _step(self, step: Callable[[], None]) -> None:
        """Run a step; an exception in it ends the run, so that the cleaner does not wait for ever."""
        try:
            step()
        except Exception as error:
            logger.error("Error in the cleaning of %s", self.job.topic_partition, exc_info=error)
            self.error = self.error or WorkerError(repr(error))
            self.is_cancelled = True
            if not self._has_ended:
                self._end()

    def _finish(self) -> None:
        self._has_ended = True
        self._on_end(self)

    def _fail(self, error: OSError) -> None:
        log_dir = self.log.log_dir
        log_dir.fail(f"Failed to clean up log for {self.job.topic_partition} in dir {log_dir.path}", error)

    def _end(self) -> None:
        self._has_ended = True
        if self.log.log_dir.is_online:
            self._remove_cleaned_files(self._finish)
        else:
            self._finish()

    def _remove_cleaned_files(self, then: Callable[[], None]) -> None:
        directory, fs = self.log.dir, self._environment.fs

        def removed(result: OSError | None) -> None:
            if isinstance(result, OSError):
                self._fail(result)
            then()

        self._environment.io_pool.submit(lambda: remove_cleaned_files(directory, fs), removed)
