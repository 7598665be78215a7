"""What the storage layer asks of the outside: places to run what must not run on the event loop.

The log code runs on the event loop and must not wait for a disk, nor compute for long. Whatever may wait (fsync,
unlink, reading cold pages) is handed to an `IoPool`; whatever computes (compaction, recovery) to a `WorkerPool`, whose
processes leave the GIL alone. Results come back on the loop. The broker implements the ports with threads and spawned
processes; tests and the tools that own their process run the work in place.

Invariant: `done` is called exactly once for each `submit`, on the thread that owns the logs, with the value of the
work or the error that took its place. An `IoPool` answers OSError only: every other exception is a bug and is not
swallowed. A `WorkerPool` answers WorkerError for bugs and for a process that has died.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")
ArgumentT = TypeVar("ArgumentT")


class IoPool(Protocol):
    """Runs calls that release the GIL away from the event loop."""

    def submit(self, work: Callable[[], T], done: Callable[[T | OSError], None]) -> None:
        """Run `work` elsewhere, then `done(result)` on the loop."""


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
    """Work that ended without a result: by a bug, whose traceback this says, or because its process died."""


class WorkerJob(Protocol):
    """Work under way."""

    def cancel(self) -> None:
        """Kill the process. `done` gets a WorkerError, unless the result was on its way already."""


class WorkerPool(Protocol):
    """Runs functions that compute in processes of their own, as many at a time as are submitted."""

    def submit(
        self,
        work: Callable[[ArgumentT, Callable[[object], None]], T],
        argument: ArgumentT,
        done: Callable[[T | OSError | WorkerError], None],
        on_report: Callable[[object], None] | None = None,
    ) -> WorkerJob:
        """Run `work(argument, report)` elsewhere, then `done(result)` on the loop.

        `work` is a function of a module, and everything that goes there and back can be pickled. What it hands to
        `report` while it runs comes to `on_report` on the loop, in order and before `done`.
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
        """There is nothing left to cancel."""


def _ignore(_: object) -> None:
    """Nobody listens."""
