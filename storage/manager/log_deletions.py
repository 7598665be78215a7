"""Deletes logs: renames their directories `-delete` in the I/O pool, and removes them later.

A rename waits for the journal of a busy disk. So the log is closed at once, and a thread renames its directory. A new
log must not use the name before: `when_free` calls back after the rename, `free` renames now, unless a thread has.

A directory is removed `log.segment.delete.delay.ms` after its rename, or after the start that found it. A topic's
`file.delete.delay.ms` is not for the directory: it ends with the topic. The broker's setting may change meanwhile.

Invariants: a directory is renamed once, by the thread or by `free`; the checkpoints without the log, and the sync of
the log directory, follow the rename.

Kafka: LogManager.asyncDelete, LogManager.deleteLogs.
"""

from __future__ import annotations

import logging
from threading import Lock
from typing import TYPE_CHECKING

from odradek.storage import log_files

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.storage.disk.environment import Environment
    from odradek.storage.disk.log_dir import LogDir
    from odradek.storage.log.unified_log import UnifiedLog

logger = logging.getLogger(__name__)


class _Rename:
    """The rename of the directory of one deleted log."""

    __slots__ = ("error", "is_done", "lock", "log", "on_failure", "source", "waiting")

    def __init__(self, log: UnifiedLog, source: str, on_failure: Callable[[], None] | None) -> None:
        self.log = log
        self.source = source
        self.on_failure = on_failure
        self.waiting: list[Callable[[], None]] = []
        self.lock = Lock()
        """Held while the directory is renamed."""
        self.is_done = False
        self.error: OSError | None = None


class LogDeletions:
    """The deletions of one log manager. `checkpoint` queues the checkpoints of a log directory. `delay_ms` returns the
    present log.segment.delete.delay.ms.
    """

    __slots__ = ("_checkpoint", "_delay_ms", "_environment", "_is_stopped", "_renames")

    def __init__(
        self, environment: Environment, checkpoint: Callable[[LogDir], None], delay_ms: Callable[[], int]
    ) -> None:
        self._environment = environment
        self._checkpoint = checkpoint
        self._delay_ms = delay_ms
        self._is_stopped = False
        self._renames: dict[str, _Rename] = {}
        """By the name that the directory still has."""

    def delete(self, log: UnifiedLog, on_failure: Callable[[], None] | None = None) -> None:
        """Close the log, rename its directory, and remove that later. `on_failure`: the directory cannot be renamed, or
        the sync of its new name fails, and its log directory is offline. It is called before `LogManager.when_durable`
        calls back.

        Raises: KafkaError KAFKA_STORAGE_ERROR for a log of a directory that is offline already.
        """
        name = log_files.marked_dir_name(
            log.topic_partition, self._environment.new_uuid_hex(), log_files.DELETE_DIR_SUFFIX
        )
        source = log.dir
        try:
            log.give_up_dir(log.log_dir.file(name))
        finally:
            log.discard()
        rename = self._renames[source] = _Rename(log, source, on_failure)
        self._environment.io_pool.submit(lambda: self._rename(rename), lambda _: self._renamed(rename))

    def when_free(self, path: str, callback: Callable[[], None]) -> None:
        """Call back when no deleted log has its directory at `path` any more; at once if none has."""
        rename = self._renames.get(path)
        if rename is None:
            callback()
        else:
            rename.waiting.append(callback)

    def when_all_renamed(self, callback: Callable[[], None]) -> None:
        """Call back when the directories of all logs that are deleted so far are renamed."""
        remaining = len(self._renames)
        if not remaining:
            callback()

        def renamed() -> None:
            nonlocal remaining
            remaining -= 1
            if not remaining:
                callback()

        for rename in list(self._renames.values()):
            rename.waiting.append(renamed)

    def free(self, path: str) -> None:
        """Rename the directory of a deleted log now, if it still has the name `path`. Waits for the disk."""
        rename = self._renames.get(path)
        if rename is not None:
            self._rename(rename)
            self._renamed(rename)

    def stop(self) -> None:
        """Rename all directories that are to be renamed, and remove none any more. Waits for the disk."""
        for path in list(self._renames):
            self.free(path)
        self._is_stopped = True

    def remove_later(self, path: str, log_dir: LogDir) -> None:
        """Remove a directory that is renamed already."""
        environment = self._environment
        since_ms = environment.clock.monotonic_ms()

        def removed(result: OSError | None) -> None:
            if isinstance(result, OSError):
                log_dir.fail(f"Error while deleting {path}", result)
            else:
                logger.info("Deleted log directory %s", path)

        def remove_if_due() -> None:
            if not log_dir.is_online or self._is_stopped:
                return
            remaining_ms = since_ms + self._delay_ms() - environment.clock.monotonic_ms()
            if remaining_ms > 0:
                environment.timer.schedule(remaining_ms, remove_if_due)
            else:
                environment.io_pool.submit(lambda: environment.fs.remove_tree(path), removed)

        environment.timer.schedule(self._delay_ms(), remove_if_due)

    def _rename(self, rename: _Rename) -> None:
        """Runs in a thread, or in `free`."""
        with rename.lock:
            if not rename.is_done:
                rename.is_done = True
                try:
                    self._environment.fs.rename(rename.source, rename.log.dir)
                except OSError as error:
                    rename.error = error

    def _renamed(self, rename: _Rename) -> None:
        if self._renames.get(rename.source) is not rename:
            return  # `free` was quicker
        del self._renames[rename.source]
        log, log_dir = rename.log, rename.log.log_dir
        if rename.error is not None:
            log_dir.fail(f"Error while renaming {rename.source} to {log.dir}", rename.error)
        elif log_dir.is_online:
            log_dir.sync_queue.sync_dir(log_dir.path)
            self._checkpoint(log_dir)
            logger.info(
                "Log for partition %s is renamed to %s and is scheduled for deletion", log.topic_partition, log.dir
            )
            self.remove_later(log.dir, log_dir)
        if (on_failure := rename.on_failure) is not None:
            log_dir.sync_queue.when_durable(lambda _: None if log_dir.is_online else on_failure())
        for callback in rename.waiting:
            callback()
