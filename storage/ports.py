"""What the storage layer asks of the outside: a place to run blocking calls.

The log code runs on the event loop and must not wait for a disk. Whatever may wait (fsync, unlink, reading cold pages)
is handed to an `IoPool`; the result comes back on the loop. The broker implements the port with a small thread pool;
tests and the tools that own their process run the work in place with `InlineIoPool`.

Invariant: `done` is called exactly once for each `submit`, on the thread that owns the logs, with the value of the
work or the OSError it raised. Every other exception is a bug and is not swallowed here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


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
