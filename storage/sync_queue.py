"""Small files and directory changes on their way to the disk, in batches, off the event loop.

A change of leader epochs, partition.metadata or a checkpoint is made in memory and queued here; one worker at a time
writes and fsyncs what has gathered. Whoever must not answer before it is durable (CreateTopics, LeaderAndIsr,
truncation) asks `when_durable`; appends do not ask. A file queued twice is written once, with its last content.

Invariants: at most one batch is under way; callbacks run in the order of their registration, each exactly once, after
everything queued before it has been stored or with the error that kept it from being; a failed batch is not retried,
because after a failed fsync the kernel calls the lost pages clean ("Can applications recover from fsync failures?",
ATC '20): the directory goes offline.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.storage.file_system import FileSystem
    from odradek.storage.ports import IoPool

    Durable = Callable[[OSError | None], None]


class SyncQueue:
    """The queue of one log directory."""

    __slots__ = ("_busy", "_dirs", "_failure", "_files", "_fs", "_io_pool", "_on_failure", "_synced_fds", "_waiting")

    def __init__(self, fs: FileSystem, io_pool: IoPool, on_failure: Callable[[OSError], None]) -> None:
        self._fs = fs
        self._io_pool = io_pool
        self._on_failure = on_failure
        self._files: dict[str, bytes] = {}
        self._dirs: dict[str, None] = {}
        self._synced_fds: list[int] = []
        self._waiting: list[Durable] = []
        self._busy = False
        self._failure: OSError | None = None

    @property
    def is_idle(self) -> bool:
        return not self._busy and not self._files and not self._dirs and not self._synced_fds

    def write(self, path: str, content: bytes) -> None:
        """Replace a file's content, atomically."""
        self._files[path] = content
        self._pump()

    def sync_dir(self, path: str) -> None:
        """Make created, renamed and removed names in a directory durable."""
        self._dirs[path] = None
        self._pump()

    def sync_fd(self, fd: int) -> None:
        """Make a file's content and length durable; the queue owns the descriptor from now on and closes it."""
        self._synced_fds.append(fd)
        self._pump()

    def when_durable(self, callback: Durable) -> None:
        """Call back once everything queued so far is on the disk: at once if it is."""
        if self._failure is not None or self.is_idle:
            callback(self._failure)
        else:
            self._waiting.append(callback)
            self._pump()

    def forget_dir(self, path: str) -> list[str]:
        """Drop what is queued below a directory that is renamed or removed; answers the names of the files."""
        prefix = path + os.sep
        dropped = [file for file in self._files if file.startswith(prefix)]
        for file in dropped:
            del self._files[file]
        self._dirs.pop(path, None)
        return [os.path.basename(file) for file in dropped]

    def drain(self) -> None:
        """Store what is queued, here and now: for shutdown, when there is no loop to stall."""
        files, self._files = self._files, {}
        dirs, self._dirs = self._dirs, {}
        fds, self._synced_fds = self._synced_fds, []
        if files or dirs or fds:
            _store(self._fs, files, dirs, fds)
        self._call_back(None)

    def _pump(self) -> None:
        if self._busy or self._failure is not None:
            return
        if not self._files and not self._dirs and not self._synced_fds:
            self._call_back(None)
            return
        self._busy = True
        files, self._files = self._files, {}
        dirs, self._dirs = self._dirs, {}
        fds, self._synced_fds = self._synced_fds, []
        waiting, self._waiting = self._waiting, []
        fs = self._fs

        def work() -> None:
            _store(fs, files, dirs, fds)

        def done(result: OSError | None) -> None:
            self._busy = False
            if isinstance(result, OSError):
                self._failure = result
                self._on_failure(result)
            for callback in waiting:
                callback(self._failure)
            if self._failure is not None:
                self._call_back(self._failure)
            self._pump()

        self._io_pool.submit(work, done)

    def _call_back(self, failure: OSError | None) -> None:
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback(failure)


def _store(fs: FileSystem, files: dict[str, bytes], dirs: dict[str, None], fds: list[int]) -> None:
    """The worker's part: write and fsync files, then their directories, then what was already written."""
    try:
        changed_dirs = dict(dirs)
        for path, content in files.items():
            directory = os.path.dirname(path)
            try:
                fs.write_file(path + ".tmp", content, sync=True)
                fs.rename(path + ".tmp", path)
            except FileNotFoundError:
                if os.path.isdir(directory):
                    raise
                continue  # the directory was renamed or removed meanwhile, and its owner queued the file anew
            changed_dirs[directory] = None
        for fd in fds:
            fs.sync(fd)
        for directory in changed_dirs:
            fs.sync_dir(directory)
    finally:
        for fd in fds:
            os.close(fd)
