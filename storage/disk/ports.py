"""The ports through which the storage layer runs work off the event loop.

The log code runs on the event loop: it must not wait for a disk or compute for long. Work that may wait (fsync, unlink,
reads of cold pages) goes to an `IoPool`; work that computes (compaction, recovery) to a `WorkerPool`, whose processes
do not hold the broker's GIL. Results come back on the event loop. The broker implements the ports with threads and
spawned processes; tests and command-line tools run the work in place.

Invariant: `done` is called exactly once for each `submit`, on the thread that owns the logs, with the result of the
work or its error. An `IoPool` passes OSError only: every other exception is a bug and propagates. A `WorkerPool` passes
WorkerError for bugs and for a process that died.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
ArgumentT = TypeVar("ArgumentT")


class IoPool(Protocol):
    """Runs calls that release the GIL, off the event loop."""

    def submit(self, work: Callable[[], T], done: Callable[[T | OSError], None]) -> None:
        """Run `work` in another thread, then `done(result)` on the event loop."""


class InlineIoPool:
    """The pool of tests and command-line tools: the caller waits."""

    __slots__ = ()

    def submit(self, work: Callable[[], T], done: Callable[[T | OSError], None]) -> None:
        result: T | OSError
        try:
            result = work()
        except OSError as error:
            result = error
        done(result)


class WorkerError(Exception):
    """Work ended without a result: by a bug, whose traceback is the message, or because its process died."""


class WorkerJob(Protocol):
    """Running work."""

    def cancel(self) -> None:
        """Kill the process. `done` gets a WorkerError, unless the result was sent already."""


class WorkerPool(Protocol):
    """Runs functions that compute, each in its own process. The caller limits their number."""

    def submit(
        self,
        work: Callable[[ArgumentT, Callable[[object], None]], T],
        argument: ArgumentT,
        done: Callable[[T | OSError | WorkerError], None],
        on_report: Callable[[object], None] | None = None,
    ) -> WorkerJob:
        """Run `work(argument, report)` in another process, then `done(result)` on the event loop.

        `work` is a function of a module; arguments, reports and results can be pickled. Each value that it passes to
        `report` comes to `on_report` on the event loop, in order and before `done`.
        """


class InlineWorkerPool:
    """The workers of tests and command-line tools: the caller waits. A bug raises."""

    __slots__ = ()

    def submit(
        self,
        work: Callable[[ArgumentT, Callable[[object], None]], T],
        argument: ArgumentT,
        done: Callable[[T | OSError | WorkerError], None],
        on_report: Callable[[object], None] | None = None,
    ) -> WorkerJob:
        result: T | OSError
        try:
            result = work(argument, on_report or _ignore)
        except OSError as error:
            result = error
        done(result)
        return _DoneJob()


class _DoneJob:
    __slots__ = ()

    def cancel(self) -> None:
        """Do nothing: the work is done."""


def _ignore(_: object) -> None:
    """The default `on_report`."""
