"""One compaction of one log: a job in a worker process, then the new segments put in place, one after another.

    cleaning     a worker writes `.cleaned` files
    naming       a replacement has become `.swap`; the directory is being synced
    swapping     (in one call) it takes the place of its sources; then the next one is named, or the run ends
    splitting    a worker has met a segment whose offsets overflow and writes its parts; they are put in place likewise,
                 and compacting the log is left to another run

It can be cancelled at any time, by a call that does not wait: a worker is killed; a replacement that is being named is
put in place at once, without waiting for the disk, because `.swap` files must not outlive a change of the log (the next
start would believe them). What is `.cleaned` then is removed in the background; nobody believes that. A disk on which
there is no room for the new segments is full and no failure.

Invariants: `on_end` is called exactly once, when the run touches no file any more and has left no `.cleaned` file;
replacements are put in place from the lowest offset up, so that a `.cleaned` file which a crash leaves speaks against
none that is in place.

Kafka: Cleaner.doClean, seen from outside, and the end of CleanerThread.cleanLog.
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
    """New segments and the ones whose place they take, by their base offsets."""

    new: tuple[int, ...]
    sources: tuple[int, ...]


class CleanRun:
    """A compaction under way."""

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
        """What was put in place; None while that is not so, or it came to nothing."""
        self.error: WorkerError | None = None
        """A bug, or a worker that died."""
        self._environment = environment
        self._on_end = on_end
        self._has_ended = False
        self._worker_job: WorkerJob | None = None
        self._outcome: CleanResult | None = None
        """The result once all is in place; None for a split."""
        self._replacements: deque[Replacement] = deque()
        self._swapping: tuple[Replacement, list[LogSegment]] | None = None

    def start(self, clean_log: CleanLog) -> None:
        self._submit(clean_log, self.job, self._cleaned)

    def cancel(self) -> None:
        """Let go of the log. What has been put in place stays."""
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
            # First, for they lie below the parts: see the invariants.
            self._remove_cleaned_files(lambda: self._split(split.base_offset))
            return
        self._outcome = result
        for group in result.groups:
            self._replacements.append(Replacement((group.base_offset,), group.source_base_offsets))
        self._name_next()

    def _split(self, base_offset: int) -> None:
        def written(parts: list[int]) -> None:
            self._replacements.append(Replacement(tuple(parts), (base_offset,)))
            self._name_next()

        if self.is_cancelled:
            self._end()
            return
        job = SplitJob(directory=self.log.dir, base_offset=base_offset, config=self.log.config)
        self._submit(split_in_worker, job, written)

    # -- putting in place --------------------------------------------------------------------------------

    def _name_next(self) -> None:
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
        log.log_dir.sync_queue.when_durable(lambda _: self._step(self._named))

    def _named(self) -> None:
        if self._swapping is not None:
            self._put_in_place()
        # Not at once: there may be many, and the loop has other things to do.
        self._environment.timer.schedule(0, lambda: self._step(self._name_next))

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
        """A bug ends the run, as one in the worker does: the cleaner must not wait for it for good."""
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
