"""Writes small files and syncs directories in batches, off the event loop.

A change of leader epochs, partition.metadata or a checkpoint is made in memory and queued here; one thread at a time
writes and fsyncs the queued batch. A reply that requires a durable change (CreateTopics, LeaderAndIsr, truncation)
waits in `when_durable`; appends do not wait. A file queued twice is written once, with its last content.

Invariants: at most one batch is being stored; callbacks run in the order of their registration, each exactly once,
after everything queued before it is stored or with the error that prevented it; a failed batch is not retried, because
after a failed fsync the kernel marks the lost pages as clean ("Can applications recover from fsync failures?",
ATC '20): the directory goes offline. Only a file or directory whose write has not begun, for lack of space or of
descriptors, stays queued: its callbacks get the error, and it is written with the next change or `retry`.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING

from odradek.storage.disk.descriptors import is_out_of_descriptors
from odradek.storage.disk.disk_space import is_no_space

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.storage.disk.file_system import FileSystem
    from odradek.storage.disk.ports import IoPool

    Cut = Callable[[int], None]
    Durable = Callable[[OSError | None], None]
    Content = bytes | Callable[[], bytes]


@dataclass(slots=True)
class Batch:
    """The files, directories and descriptors that are stored together."""

    files: dict[str, Content] = field(default_factory=dict)
    dirs: dict[str, None] = field(default_factory=dict)
    fds: dict[int, Cut | None] = field(default_factory=dict)
    """Descriptors, and what to do with each before it is synced."""
    is_stored: bool = False
    kept: dict[str, Content] = field(default_factory=dict)
    """Files for which there was no space, or no descriptor."""
    kept_dirs: dict[str, None] = field(default_factory=dict)
    """Directories for which there was no descriptor."""
    forgotten: set[str] = field(default_factory=set)
    """Directories that were renamed or removed since the batch was made; their names may be in use again."""
    no_space: OSError | None = None

    @property
    def is_empty(self) -> bool:
        return not self.files and not self.dirs and not self.fds

    def resolve_contents(self) -> Batch:
        """Call the contents that are functions; on the event loop, before a worker thread gets the batch.

        A function that raises is dropped first: in the queue, it would block all other files for ever.
        """
        for path, content in list(self.files.items()):
            if not isinstance(content, bytes):
                del self.files[path]
                self.files[path] = content()
        return self


class SyncQueue:
    """The queue of one log directory."""

    __slots__ = (
        "_failure",
        "_fs",
        "_gathering",
        "_in_flight",
        "_io_pool",
        "_lock",
        "_on_failure",
        "_on_full",
        "_waiting",
    )

    def __init__(
        self,
        fs: FileSystem,
        io_pool: IoPool,
        on_failure: Callable[[OSError], None],
        on_full: Callable[[OSError], None] = lambda error: None,
    ) -> None:
        self._fs = fs
        self._io_pool = io_pool
        self._on_failure = on_failure
        self._on_full = on_full
        self._gathering = Batch()
        self._in_flight: Batch | None = None
        self._lock = Lock()
        """Held while a batch is being stored. Contended only when `drain` runs beside a worker thread, at shutdown."""
        self._waiting: list[Durable] = []
        self._failure: OSError | None = None

    @property
    def is_idle(self) -> bool:
        return self._in_flight is None and self._gathering.is_empty

    def write(self, path: str, content: Content) -> None:
        """Replace a file's content atomically.

        A content function is called on the event loop just before the file is stored, so that many changes in a row
        are encoded once.
        """
        self._gathering.files[path] = content
        self._pump()

    def write_later(self, path: str, content: bytes) -> None:
        """Replace a file's content with the next batch, without starting one: for content that a crash may lose."""
        self._gathering.files[path] = content

    def withdraw(self, path: str) -> bool:
        """Cancel the queued write of a file. False if it was not queued any more: its content may have changed."""
        return self._gathering.files.pop(path, None) is not None

    def sync_dir(self, path: str) -> None:
        """Sync a directory, so that created, renamed and removed names in it are durable."""
        self._gathering.dirs[path] = None
        self._pump()

    def sync_fd(self, fd: int, cut: Cut | None = None) -> None:
        """Sync a file's content and length. The queue takes over the descriptor and closes it.

        `cut` truncates the file before that, in the thread, and before anything that is queued now or later is stored.
        """
        if self._failure is not None:
            os.close(fd)
            return
        self._gathering.fds[fd] = cut
        self._pump()

    def when_durable(self, callback: Durable) -> None:
        """Call back when everything queued so far is stored, at once if it is, or with the error that prevents it."""
        if self._failure is not None or self.is_idle:
            callback(self._failure)
        else:
            self._waiting.append(callback)
            self._pump()

    def forget_dir(self, path: str) -> list[str]:
        """Drop the queued files of a directory before it is renamed or removed; returns their names.

        The batch being stored then renames no file into a new directory of the same name.
        """
        if self._in_flight is not None:
            self._in_flight.forgotten.add(path)
        prefix = path + os.sep
        dropped = [file for file in self._gathering.files if file.startswith(prefix)]
        for file in dropped:
            del self._gathering.files[file]
        self._gathering.dirs.pop(path, None)
        return [os.path.basename(file) for file in dropped]

    def retry(self) -> None:
        """Write the files that stayed queued for lack of space."""
        if not self._gathering.is_empty:
            self._pump()

    def fail(self, error: OSError) -> None:
        """Drop the queue after the directory failed: the queued state may be wrong. Callbacks get the error."""
        if self._failure is None:
            self._failure = error
        dropped, self._gathering = self._gathering, Batch()
        for fd in dropped.fds:
            os.close(fd)
        self._call_back(self._failure)

    def drain(self) -> None:
        """Store the queue synchronously: for shutdown, when no event loop runs.

        A batch that waits for its thread is stored here, before the newer one; the thread then finds nothing to do.
        Raises: OSError, also for files that stay queued for lack of space.
        """
        gathered, self._gathering = self._gathering.resolve_contents(), Batch()
        for batch in (self._in_flight, gathered):
            if batch is not None:
                self._store(batch)
                if batch.no_space is not None:
                    raise batch.no_space
        self._call_back(None)

    def _pump(self) -> None:
        if self._in_flight is not None or self._failure is not None:
            return
        if self._gathering.is_empty:
            self._call_back(None)
            return
        batch = self._in_flight = self._gathering.resolve_contents()
        self._gathering = Batch()
        waiting, self._waiting = self._waiting, []

        def done(result: OSError | None) -> None:
            self._in_flight = None
            if isinstance(result, OSError):
                self._failure = result
                self._on_failure(result)
                self.fail(result)
            elif batch.no_space is not None:
                # Content queued meanwhile is newer.
                self._gathering.files = batch.kept | self._gathering.files
                self._gathering.dirs = batch.kept_dirs | self._gathering.dirs
                self._on_full(batch.no_space)
            for callback in waiting:
                callback(self._failure or batch.no_space)
            if batch.no_space is None or self._waiting:
                self._pump()

        self._io_pool.submit(lambda: self._store(batch), done)

    def _store(self, batch: Batch) -> None:
        """Store a batch, at most once. Runs in a worker thread or in `drain`."""
        with self._lock:
            if not batch.is_stored:
                batch.is_stored = True
                _store(self._fs, batch)

    def _call_back(self, failure: OSError | None) -> None:
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback(failure)


def _store(fs: FileSystem, batch: Batch) -> None:
    """Cut files, write and fsync the small ones, then fsync the descriptors, then the directories."""
    try:
        for fd, cut in batch.fds.items():
            if cut is not None:
                cut(fd)
        changed_dirs = dict(batch.dirs)
        for path, content in batch.files.items():
            assert isinstance(content, bytes), "contents are resolved before a batch is stored"
            directory = os.path.dirname(path)
            try:
                no_space = _write(fs, path + ".tmp", content)
                if no_space is not None:
                    batch.no_space, batch.kept[path] = no_space, content
                    continue
                if directory in batch.forgotten:
                    continue
                fs.rename(path + ".tmp", path)
            except FileNotFoundError:
                if directory not in batch.forgotten and os.path.isdir(directory):
                    raise
                continue  # the directory was renamed or removed meanwhile, and its log queued the file again
            changed_dirs[directory] = None
        for fd in batch.fds:
            fs.sync(fd)
        for directory in changed_dirs:
            try:
                fs.sync_dir(directory)
            except OSError as error:
                if not is_out_of_descriptors(error):
                    raise
                batch.no_space, batch.kept_dirs[directory] = error, None
    finally:
        for fd in batch.fds:
            os.close(fd)


def _write(fs: FileSystem, path: str, content: bytes) -> OSError | None:
    """Write and fsync a temporary file. Without space or descriptors, removes it and returns the error."""
    try:
        fs.write_file(path, content)
    except OSError as error:
        if not is_no_space(error):
            raise
        fs.unlink(path)
        return error
    try:
        fs.sync_path(path)
    except OSError as error:
        if not is_out_of_descriptors(error):
            raise
        fs.unlink(path)
        return error
    return None
