"""Compaction without worker processes: a simple clean, and workers that wait until the test lets them continue."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, cast

from odradek.storage.cleaning.clean_job import CleanedGroup, CleanJob, CleanResult
from odradek.storage.cleaning.log_cleaner import LogCleaner
from odradek.storage.cleaning.log_to_clean import LogToClean
from odradek.storage.config.cleaner_config import CleanerConfig
from odradek.storage.disk.environment import Environment
from odradek.storage.disk.ports import WorkerError
from odradek.storage.segment.log_segment import LogSegment
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer

T = TypeVar("T")
ArgumentT = TypeVar("ArgumentT")

GROUP_SIZE = 2
"""Segments that `keep_last` makes one of."""


def keep_last(job: CleanJob, report: Callable[[object], None]) -> CleanResult:
    """Keep the last batch of each key below the first uncleanable offset. Every batch has one record."""
    clock = ManualClock(job.now_ms)
    environment = Environment(clock=clock, timer=SystemTimer(clock), new_uuid_hex=str)
    sources = [LogSegment.open(job.directory, base, job.config, environment) for base in job.base_offsets]
    latest = {
        bytes(record.key or b""): record.offset
        for source in sources
        for _, batch in source.records.batches()
        for record in batch.records()
    }
    groups = []
    for first in range(0, len(sources), GROUP_SIZE):
        group = sources[first : first + GROUP_SIZE]
        cleaned = LogSegment.open(
            job.directory, group[0].base_offset, job.config, environment, create=True, suffix=".cleaned"
        )
        for source in group:
            for _, batch in source.records.batches():
                (record,) = batch.records()
                if latest[bytes(record.key or b"")] == record.offset:
                    cleaned.append([batch.buffer], record.offset, record.timestamp, record.offset)
        cleaned.close()
        groups.append(CleanedGroup(tuple(source.base_offset for source in group), group[0].base_offset))
    for source in sources:
        source.discard()
    return CleanResult(next_dirty_offset=job.first_uncleanable_offset, groups=groups)


def clean_job(found: LogToClean) -> CleanJob:
    """The job of a cleaner with Kafka's defaults for a log."""
    log = found.log
    cleaner = LogCleaner(CleanerConfig(), {}, (), log.local_log.environment)
    return cleaner.job_of(found)


class HeldJob:
    """A submitted job; `go_on` does it, with `work` in place of its own work if given."""

    def __init__(self, argument: object, done: Callable[[object], None], work: Callable[[object], object]) -> None:
        self.argument = argument
        self.is_cancelled = False
        self._done = done
        self._work = work

    def cancel(self) -> None:
        self.is_cancelled = True

    def go_on(self) -> None:
        if self.is_cancelled:
            self._done(WorkerError("killed"))
            return
        try:
            self._done(self._work(self.argument))
        except (OSError, WorkerError) as error:
            self._done(error)


class HeldWorkers:
    """A WorkerPool whose jobs wait for the test. Compactions are done by `clean`, everything else as it was given."""

    def __init__(self, clean: Callable[[CleanJob, Callable[[object], None]], CleanResult] = keep_last) -> None:
        self.clean = clean
        self.jobs: list[HeldJob] = []

    def submit(
        self,
        work: Callable[[ArgumentT, Callable[[object], None]], T],
        argument: ArgumentT,
        done: Callable[[T | OSError | WorkerError], None],
        on_report: Callable[[object], None] | None = None,
    ) -> HeldJob:
        job = HeldJob(
            argument,
            cast("Callable[[object], None]", done),
            lambda given: (
                self.clean(given, lambda _: None)
                if isinstance(given, CleanJob)
                else work(cast("ArgumentT", given), lambda _: None)
            ),
        )
        self.jobs.append(job)
        return job

    @property
    def clean_jobs(self) -> list[CleanJob]:
        return [cast("CleanJob", job.argument) for job in self.jobs]

    def go_on(self) -> None:
        """Do every waiting job."""
        jobs, self.jobs = self.jobs, []
        for job in jobs:
            job.go_on()
