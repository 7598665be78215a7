"""An operation that waits until it can complete, or for `delay_ms` at most: a produce that waits for replicas, a
fetch that waits for bytes, a join that waits for members.

It completes exactly once, by whichever comes first: `try_complete` finds its condition met and calls
`force_complete`, or its time is up. Either way `on_complete` runs, once; after a time-out `on_expiration` runs too.

Before `on_complete` is called the operation has left the timer and every watch list, so whatever `on_complete` does
to the purgatory (check other keys, or the same, complete other operations, watch new ones) never meets this one
again.

Kafka: DelayedOperation, without its lock: there is one thread.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

from odradek.timer.task import TimerTask


class Watcher(Protocol):
    """The port to the purgatory that watches an operation, and forgets it when it completes."""

    def forget(self, operation: DelayedOperation) -> None: ...

    def watch_also(self, operation: DelayedOperation, key: Hashable) -> None: ...


class DelayedOperation(TimerTask):
    """Subclasses implement `try_complete` and `on_complete`, and `on_expiration` if a time-out means more than that."""

    __slots__ = ("is_completed", "watch_keys", "watched_by")

    def __init__(self, delay_ms: int) -> None:
        # TimerTask.__init__, written out: a broker makes one operation for each request that waits.
        self.delay_ms = delay_ms
        self.expiration_ms = -1
        self.bucket = None
        self.is_completed = False
        self.watched_by: Watcher | None = None
        self.watch_keys: list[Hashable] = []

    def try_complete(self) -> bool:
        """Check the condition; if it is met return `force_complete()`, else False."""
        raise NotImplementedError

    def try_complete_for(self, key: Hashable) -> bool:
        """The same when something changed under one of its keys: it may be all that has to be looked at."""
        return self.try_complete()

    def on_complete(self) -> None:
        """What completing means. Called exactly once."""
        raise NotImplementedError

    def on_expiration(self) -> None:
        """What running out of time means beyond `on_complete`, after which it is called: a metric, usually."""

    def force_complete(self) -> bool:
        """Complete now, unless completed already; whether this call did it."""
        if self.is_completed:
            return False
        self.is_completed = True
        self.cancel()
        if self.watched_by is not None:
            self.watched_by.forget(self)
        self.on_complete()
        return True

    def run(self) -> None:
        """The time is up."""
        if self.force_complete():
            self.on_expiration()
