"""Getting a log to the disk without waiting for it: fsync off the event loop, with the recovery point as its result.

A flush up to an offset covers the segments from the recovery point on. One is under way at a time; requests that
arrive meanwhile are served together by the next (group commit), so that `flush.messages=1` costs one fsync per round
trip of the disk and not one per append.

A checkpoint of the recovery point promises the next start that everything below is whole, so that it looks at nothing
there. `promised` is what a checkpoint may say: less than the recovery point where a cut is about to be made, and
nothing for an empty log, which may begin anew at another offset.

Invariants: the recovery point only advances to an offset that had been appended before the fsync began; truncation
moves it back and voids the flush under way; after a failed fsync nothing is retried and the directory goes offline.

Kafka: UnifiedLog.flush and LocalLog.flush.
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
"""After running out of descriptors."""

logger = logging.getLogger(__name__)


class LogFlusher:
    """The recovery point of one log, and how it moves."""

    __slots__ = (
        "_dir_changed",
        "_environment",
        "_failure",
        "_finished",
        "_generation",
        "_in_flight",
        "_is_dir_new",
        "_is_held",
        "_on_failure",
        "_promise_limits",
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
        """The first offset not known to be on the disk."""
        self.last_flushed_ms = environment.clock.time_ms()
        self._segments = segments
        self._environment = environment
        self._on_failure = on_failure
        self._requested = recovery_point
        self._in_flight = False
        self._is_held = False
        self._generation = 0
        self._promise_limits: list[int] = []
        self._failure: OSError | None = None
        self._finished: list[LogSegment] = []
        self._syncing: list[LogSegment] = []
        """What the flush under way covers, or the one that is to be tried again."""
        self._waiting: list[tuple[int, Flushed]] = []
        self._dir_changed = True
        self._is_dir_new = recovery_point == 0
        """Nothing was flushed before: the name of the directory may not be on the disk."""

    @property
    def promised(self) -> int:
        """The recovery point that a checkpoint may have."""
        segments = self._segments
        if segments.first is segments.active and not segments.active.size:
            return 0
        return min(self.recovery_point, *self._promise_limits) if self._promise_limits else self.recovery_point

    def promise_at_most(self, offset: int) -> None:
        """Let no checkpoint promise more than this, until `promise_again` is called with the same offset."""
        self._promise_limits.append(offset)

    def promise_again(self, offset: int) -> None:
        self._promise_limits.remove(offset)

    def flush(self, offset: int) -> None:
        """See to it that everything below `offset` gets to the disk."""
        if offset > self._requested:
            self._requested = offset
        self._pump()

    def files_changed(self) -> None:
        """Files have come or gone: the next flush makes their names durable too."""
        self._dir_changed = True

    def segment_finished(self, segment: LogSegment) -> None:
        """Nothing is appended to the segment any more: the next flush covers the last form of its indexes.

        Also if its records are on the disk already, and the recovery point is its end.
        """
        self._finished.append(segment)
        self._dir_changed = True

    def when_flushed(self, offset: int, callback: Flushed) -> None:
        """Call back once everything below `offset` is on the disk, asking for it if nobody has."""
        if offset <= self.recovery_point:
            callback(None)
            return
        if self._failure is not None:
            callback(self._failure)
            return
        self._waiting.append((offset, callback))
        self.flush(offset)

    def abandon(self, error: OSError) -> None:
        """The log is let go, because its directory failed or it is deleted: nothing more will be flushed."""
        self._failure = self._failure or error
        self._release(self.recovery_point, self._failure, include_beyond=True)

    def hold(self) -> None:
        """Begin no fsync until `resume`: who waits for one goes on waiting, and can be handed over."""
        self._is_held = True

    def resume(self) -> None:
        self._is_held = False
        self._pump()

    def hand_over(self, successor: LogFlusher) -> None:
        """Another log with the same records takes this one's place: who waits for a flush waits for its."""
        waiting, self._waiting = self._waiting, []
        for offset, callback in waiting:
            successor.when_flushed(offset, callback)

    def flush_now(self, offset: int) -> None:
        """Flush and wait: for start-up and shutdown, when there is no loop to stall."""
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
        """The log was cut: what was promised beyond is void."""
        self._generation += 1
        self._dir_changed = True
        self.recovery_point = min(self.recovery_point, offset)
        self._requested = min(self._requested, offset)
        # What waited for the removed records will not get them; their append is answered by the replica manager.
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

        def work() -> None:
            _sync_all(environment, descriptors, dirs)

        def done(result: OSError | None) -> None:
            if isinstance(result, OSError):
                self._failed_to_open_or_sync(result)
                return
            self._in_flight = False
            self._syncing = []
            if generation == self._generation:
                self._advance(target)
            self._pump()

        environment.io_pool.submit(work, done)

    def _descriptors(self, offset: int) -> list[int]:
        """Of everything that has to be synced: a worker that has been given a part of it may not have begun."""
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
        """The directories in which names have changed."""
        dirs = [self.log_dir] if self._dir_changed else []
        if self._is_dir_new:
            dirs.append(os.path.dirname(self.log_dir))
        self._dir_changed = self._is_dir_new = False
        return dirs

    def _advance(self, offset: int) -> None:
        self.recovery_point = max(self.recovery_point, offset)
        self.last_flushed_ms = self._environment.clock.time_ms()
        self._release(self.recovery_point, None)

    def _failed_to_open_or_sync(self, error: OSError) -> None:
        if not is_out_of_descriptors(error):
            self._failed(error)
            return
        # No fsync has failed: what was to be synced still is, and is opened anew.
        logger.warning("%s is flushed later: %s", self.log_dir, error)
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
    """The worker's part. Closes the descriptors whatever happens."""
    try:
        for fd in descriptors:
            environment.fs.sync(fd)
        for path in dirs:
            environment.fs.sync_dir(path)
    finally:
        for fd in descriptors:
            os.close(fd)
