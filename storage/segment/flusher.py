"""Flushes one log: fsync runs off the event loop and advances the recovery point.

A flush up to an offset covers the segments from the recovery point on. One runs at a time; the next one serves all
requests that arrived meanwhile (group commit), so that `flush.messages=1` costs one fsync per round trip of the disk
and not one per append.

The next start does not scan below the checkpointed recovery point. `checkpoint_offset` is the offset that a checkpoint
may contain: less than the recovery point before a truncation, and 0 for an empty log, which may begin at another offset
later.

Invariants: the recovery point only advances to an offset that was appended before the fsync began; truncation moves it
back and ignores the result of the running flush; a failed fsync is not retried, the directory goes offline.

Kafka: UnifiedLog.flush, LocalLog.flush.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, Final

from odradek.storage.disk.descriptors import is_out_of_descriptors

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.storage.disk.environment import Environment
    from odradek.storage.segment.log_segment import LogSegment
    from odradek.storage.segment.log_segments import LogSegments

    Flushed = Callable[[OSError | None], None]

RETRY_MS: Final = 1_000
"""The delay after running out of descriptors."""

logger = logging.getLogger(__name__)


class LogFlusher:
    """The recovery point of one log and the flushes that advance it."""

    __slots__ = (
        "_checkpoint_caps",
        "_dir_changed",
        "_environment",
        "_failure",
        "_finished",
        "_generation",
        "_in_flight",
        "_is_dir_new",
        "_is_held",
        "_on_failure",
        "_requested",
        "_segments",
        "_syncing",
        "_waiting",
        "last_flushed_ms",
        "log_dir",
        "recovery_point",
    )

    def __init__(
        self,
        log_dir: str,
        segments: LogSegments,
        recovery_point: int,
        environment: Environment,
        on_failure: Callable[[OSError], None],
    ) -> None:
        self.log_dir = log_dir
        self.recovery_point = recovery_point
        """All records below this offset are flushed."""
        self.last_flushed_ms = environment.clock.time_ms()
        self._segments = segments
        self._environment = environment
        self._on_failure = on_failure
        self._requested = recovery_point
        self._in_flight = False
        self._is_held = False
        self._generation = 0
        self._checkpoint_caps: list[int] = []
        self._failure: OSError | None = None
        self._finished: list[LogSegment] = []
        self._syncing: list[LogSegment] = []
        """The segments of the running flush, or of the one to be retried."""
        self._waiting: list[tuple[int, Flushed]] = []
        self._dir_changed = True
        self._is_dir_new = recovery_point == 0
        """Nothing was flushed yet: the parent of the directory must be synced too."""

    @property
    def checkpoint_offset(self) -> int:
        """The largest recovery point that a checkpoint may contain."""
        segments = self._segments
        if segments.first is segments.active and not segments.active.size:
            return 0
        return min(self.recovery_point, *self._checkpoint_caps) if self._checkpoint_caps else self.recovery_point

    def cap_checkpoint_offset(self, offset: int) -> None:
        """Limit `checkpoint_offset`, until `uncap_checkpoint_offset` is called with the same offset."""
        self._checkpoint_caps.append(offset)

    def uncap_checkpoint_offset(self, offset: int) -> None:
        self._checkpoint_caps.remove(offset)

    def flush(self, offset: int) -> None:
        """Flush everything below `offset`, in the background."""
        if offset > self._requested:
            self._requested = offset
        self._pump()

    def files_changed(self) -> None:
        """Call after files were created, renamed or removed: the next flush syncs the directory too."""
        self._dir_changed = True

    def segment_finished(self, segment: LogSegment) -> None:
        """Call when a segment becomes inactive: the next flush covers its final indexes, also if its records are
        flushed already.
        """
        self._finished.append(segment)
        self._dir_changed = True

    def when_flushed(self, offset: int, callback: Flushed) -> None:
        """Call back when everything below `offset` is flushed, or with the error; requests the flush if needed."""
        if offset <= self.recovery_point:
            callback(None)
            return
        if self._failure is not None:
            callback(self._failure)
            return
        self._waiting.append((offset, callback))
        self.flush(offset)

    def abandon(self, error: OSError) -> None:
        """Stop flushing, because the directory failed or the log is deleted: all waiting callbacks get the error."""
        self._failure = self._failure or error
        self._release(self.recovery_point, self._failure, include_beyond=True)

    def hold(self) -> None:
        """Begin no flush until `resume`. Waiting callbacks keep waiting, and `hand_over` can move them."""
        self._is_held = True

    def resume(self) -> None:
        self._is_held = False
        self._pump()

    def hand_over(self, successor: LogFlusher) -> None:
        """Move the waiting callbacks to the flusher of a log with the same records, which replaces this log."""
        waiting, self._waiting = self._waiting, []
        for offset, callback in waiting:
            successor.when_flushed(offset, callback)

    def flush_now(self, offset: int) -> None:
        """Flush synchronously: for start-up and shutdown, when no event loop runs. Raises OSError."""
        if self._failure is not None:
            raise self._failure
        under_way = self._in_flight or self._syncing
        has_unsynced = self._finished or under_way or self._segments.active.has_unsynced_indexes
        if offset <= self.recovery_point and not has_unsynced:
            return
        descriptors = self._descriptors(max(offset, self._segments.active.base_offset + 1))
        self._dir_changed = True
        _sync_all(self._environment, descriptors, self._dirs())
        if not self._in_flight:
            self._syncing = []
        self._advance(offset)

    def truncated_to(self, offset: int) -> None:
        """Call after a truncation: the recovery point is at most `offset`."""
        self._generation += 1
        self._dir_changed = True
        self.recovery_point = min(self.recovery_point, offset)
        self._requested = min(self._requested, offset)
        # Callbacks that wait for removed records are called without an error: the replica manager fails their appends.
        self._release(offset, None, include_beyond=True)

    def _pump(self) -> None:
        if self._in_flight or self._is_held or self._failure is not None:
            return
        if self._requested <= self.recovery_point and not self._finished and not self._syncing:
            return
        self._in_flight = True
        target, generation, environment = self._requested, self._generation, self._environment
        try:
            descriptors = self._descriptors(target)
        except OSError as error:
            self._failed_to_open_or_sync(error)
            return
        dirs = self._dirs()
        began_ms = environment.clock.monotonic_ms()

        def work() -> None:
            _sync_all(environment, descriptors, dirs)

        def done(result: OSError | None) -> None:
            if isinstance(result, OSError):
                self._failed_to_open_or_sync(result)
                return
            environment.flush_times_ms.update(environment.clock.monotonic_ms() - began_ms)
            self._in_flight = False
            self._syncing = []
            if generation == self._generation:
                self._advance(target)
            self._pump()

        environment.io_pool.submit(work, done)

    def _descriptors(self, offset: int) -> list[int]:
        """Descriptors of everything that must be synced, including the segments of a running flush: its worker may not
        have begun.
        """
        is_under_way = bool(self._syncing)
        changed = [*self._syncing, *self._finished]
        segments = dict.fromkeys(segment for segment in changed if self._segments.get(segment.base_offset) is segment)
        segments |= dict.fromkeys(self._segments.range(self.recovery_point, offset))
        self._finished, self._syncing = [], list(segments)
        descriptors: list[int] = []
        try:
            for segment in segments:
                descriptors += segment.sync_descriptors(unchanged_too=is_under_way)
        except OSError:
            for fd in descriptors:
                os.close(fd)
            raise
        return descriptors

    def _dirs(self) -> list[str]:
        """The directories whose names changed since the last flush."""
        dirs = [self.log_dir] if self._dir_changed else []
        if self._is_dir_new:
            dirs.append(os.path.dirname(self.log_dir))
        self._dir_changed = False
        return dirs

    def _advance(self, offset: int) -> None:
        self._is_dir_new = False
        self.recovery_point = max(self.recovery_point, offset)
        self.last_flushed_ms = self._environment.clock.time_ms()
        self._release(self.recovery_point, None)

    def _failed_to_open_or_sync(self, error: OSError) -> None:
        if not is_out_of_descriptors(error):
            self._failed(error)
            return
        # No fsync has failed, so that the flush can be repeated with new descriptors.
        logger.warning("Retrying the flush of %s in %d ms: %s", self.log_dir, RETRY_MS, error)
        self._in_flight = False
        self._dir_changed = True
        self._environment.timer.schedule(RETRY_MS, self._pump)

    def _failed(self, error: OSError) -> None:
        self._in_flight = False
        self._failure = error
        self._on_failure(error)
        self.abandon(error)

    def _release(self, offset: int, error: OSError | None, *, include_beyond: bool = False) -> None:
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        for wanted, callback in waiting:
            if wanted <= offset:
                callback(None)
            elif include_beyond:
                callback(error)
            else:
                self._waiting.append((wanted, callback))


def _sync_all(environment: Environment, descriptors: list[int], dirs: list[str]) -> None:
    """The part of a flush that a worker thread runs. Always closes the descriptors."""
    try:
        for fd in descriptors:
            environment.fs.sync(fd)
        for path in dirs:
            environment.fs.sync_dir(path)
    finally:
        for fd in descriptors:
            os.close(fd)
