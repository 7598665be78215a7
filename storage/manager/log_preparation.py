"""Makes the directories and first files of new logs in the I/O pool, before the logs are created.

Making a directory or a file waits for the journal of a busy disk. A caller that can wait prepares a log first, and
`LogManager.get_or_create_log` then takes over what is prepared. An error is not reported: `get_or_create_log` meets it
again and handles it.

Invariants: each prepared log is taken over, or its files are removed, also in a log directory that went offline: after
a repair, the next start would find them beside the log in another directory, and be refused; a directory that exists is
not touched.
"""

from __future__ import annotations

import logging
import os
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from odradek.storage.disk.file_system import may_exist
from odradek.storage.segment.new_segment_files import create_segment_files

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.config.log_config import LogConfig
    from odradek.storage.disk.environment import Environment
    from odradek.storage.disk.file_system import FileSystem
    from odradek.storage.disk.log_dir import LogDir

logger = logging.getLogger(__name__)

LogKey: TypeAlias = "tuple[TopicPartition, bool]"
"""A partition, and whether its future log is meant."""


class PreparedLog(NamedTuple):
    """The files of a log that is not created yet. `fd`: the descriptor of the first segment's `.log` file; None if not
    all files could be made, and those that were made may be left.
    """

    path: str
    log_dir: LogDir
    fd: int | None


class LogPreparations:
    """The prepared logs of one log manager."""

    __slots__ = ("_environment", "_prepared", "_under_way")

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._prepared: dict[LogKey, PreparedLog] = {}
        self._under_way: dict[LogKey, LogDir] = {}

    @property
    def log_dirs(self) -> Collection[LogDir]:
        """The log directory of each log that is prepared or being prepared."""
        return [*(prepared.log_dir for prepared in self._prepared.values()), *self._under_way.values()]

    def prepare(self, key: LogKey, path: str, log_dir: LogDir, config: LogConfig, done: Callable[[], None]) -> None:
        """Make the files of a log at `path`; `done` is called when they are there, or cannot be made. It is called at
        once for a log that is being prepared: a request may name a partition twice.
        """
        if key in self._prepared or key in self._under_way:
            done()
            return
        fs = self._environment.fs
        self._under_way[key] = log_dir

        def made(result: int | OSError | None) -> None:
            del self._under_way[key]
            if result is not None:
                fd = None if isinstance(result, OSError) else result
                self._prepared[key] = PreparedLog(path, log_dir, fd)
            done()

        self._environment.io_pool.submit(lambda: _make(path, config, fs), made)

    def take(self, key: LogKey) -> PreparedLog | None:
        """The prepared log, which the caller owns now, also one that cannot be used; None without one."""
        return self._prepared.pop(key, None)

    def discard(self, keys: Iterable[LogKey], done: Callable[[], None]) -> None:
        """Remove the files of prepared logs that were not taken over, in the I/O pool; `done` is called when they are
        removed.
        """
        unused = [prepared for each in keys if (prepared := self.take(each)) is not None]
        remaining = len(unused)
        if not unused:
            done()

        def removed(prepared: PreparedLog, result: OSError | None) -> None:
            nonlocal remaining
            remaining -= 1
            if isinstance(result, OSError):
                prepared.log_dir.fail(f"Error while removing {prepared.path}", result)
            if not remaining:
                done()

        for prepared in unused:
            self._environment.io_pool.submit(partial(self.remove, prepared), partial(removed, prepared))

    def remove(self, prepared: PreparedLog) -> None:
        """Remove the files of a prepared log. Waits for the disk. Raises OSError: a part may be left."""
        if prepared.fd is not None:
            os.close(prepared.fd)
        self._environment.fs.remove_tree(prepared.path)

    def close(self) -> None:
        """Remove all files that were not taken over. Waits for the disk."""
        for key in list(self._prepared):
            prepared = self._prepared.pop(key)
            try:
                self.remove(prepared)
            except OSError as error:
                logger.error("Error while removing %s: %s", prepared.path, error)


def _make(path: str, config: LogConfig, fs: FileSystem) -> int | None:
    """Runs in a thread. None: there is a directory, whose log has to be loaded."""
    if may_exist(path):
        return None
    fs.make_dir(path)
    try:
        return create_segment_files(path, 0, config, fs)
    except OSError:
        fs.remove_tree(path)
        raise
