"""Answers that wait for a flush: with ``flush.messages`` a producer is answered when its records are on the disk.

The appends of many requests share one fsync (group commit): each log calls back when the records are flushed.

Invariant: the wait begins in the step of the append. Later the log may have been truncated below its end of then, be
another one, or be gone.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.broker.fetch.results import LogAppendResult
    from odradek.broker.partition.partition import Partition


class FlushWaits:
    """The flushes that the answer to one request waits for."""

    __slots__ = ("_answer", "_waiting")

    def __init__(self) -> None:
        self._waiting = 0
        self._answer: Callable[[], None] | None = None

    def wait_for(self, result: LogAppendResult, partition: Partition | None) -> None:
        """Wait until the disk has what `partition` has just appended. A failed flush sets KAFKA_STORAGE_ERROR.

        `partition`: None if the begin of the flush took its directory offline.
        """
        if partition is None or partition.log is None:
            result.error = ErrorCode.KAFKA_STORAGE_ERROR
            return
        self._waiting += 1
        partition.log.when_flushed(result.required_offset, partial(self._flushed, result))

    def when_done(self, answer: Callable[[], None]) -> None:
        """Call `answer` when all flushes have ended; at once if they have. Called once, after the last `wait_for`."""
        self._answer = answer
        self._answer_if_done()

    def _flushed(self, result: LogAppendResult, error: OSError | None) -> None:
        if error is not None:
            result.error = ErrorCode.KAFKA_STORAGE_ERROR
        self._waiting -= 1
        self._answer_if_done()

    def _answer_if_done(self) -> None:
        if self._answer is not None and not self._waiting:
            self._answer()
