"""Small files and directory changes on their way to the disk, in batches, off the event loop.

A change of leader epochs, partition.metadata or a checkpoint is made in memory and queued here; one worker at a time
writes and fsyncs what has gathered. Whoever must not answer before it is durable (CreateTopics, LeaderAndIsr,
truncation) asks `when_durable`; appends do not ask. A file queued twice is written once, with its last content.

Invariants: at most one batch is under way; callbacks run in the order of their registration, each exactly once, after
everything queued before it has been stored or with the error that kept it from being; a failed batch is not retried,
because after a failed fsync the kernel calls the lost pages clean ("Can applications recover from fsync failures?",
ATC '20): the directory goes offline. Only what nothing has happened to yet is kept: a file for whose temporary there
was no space, and what could not be opened because too many files are. Whoever waits for it is told, and it is written
with the next change or `retry`.
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

    Durable = Callable[[OSError | None], None]
    Content = bytes | Callable[[], bytes]


@dataclass(slots=True)
class Batch:
    """What is stored together."""

    files: dict[str, Content] = field(default_factory=dict)
    dirs: dict[str, None] = field(default_factory=dict)
    fds: list[int] = field(default_factory=list)
    is_stored: bool = False
    kept: dict[str, Content] = field(default_factory=dict)
    """Files for which there was no space, or no descriptor."""
    kept_dirs: dict[str, None] = field(default_factory=dict)
    """Directories for which there was no descriptor."""
    forgotten: set[str] = field(default_factory=set)
    """Directories that have lost their names to others, perhaps, since the batch was made."""
    no_space: OSError | None = None

    @property
    def is_empty(self) -> bool:
        return not self.files and not self.dirs and not self.fds

    def settle(self) -> Batch:
        """Ask for the contents that are still functions; on the loop, before a worker has the batch.

        One that raises is dropped: asked again, it would keep all other files from being stored, for good.
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
        """Held while a batch is being stored. Contended only when `drain` meets a worker, at shutdown."""
        self._waiting: list[Durable] = []
        self._failure: OSError | None = None

    @property
    def is_idle(self) -> bool:
        return self._in_flight is None and self._gathering.is_empty

    def write(self, path: str, content: Content) -> None:
        """Replace a file's content, atomically.

        A function is asked for the content when the file is about to be stored, on the loop: what is changed many times
        in a row is put together once.
        """
        self._gathering.files[path] = content
        self._pump()

    def write_later(self, path: str, content: bytes) -> None:
        """Replace a file's content with the next batch: for what nobody would miss if the process died before."""
        self._gathering.files[path] = content

    def withdraw(self, path: str) -> bool:
        """Let a file's content be what it is. False if that may be another one since, or will be in a moment."""
        return self._gathering.files.pop(path, None) is not None

    def sync_dir(self, path: str) -> None:
        """Make created, renamed and removed names in a directory durable."""
        self._gathering.dirs[path] = None
        self._pump()

    def sync_fd(self, fd: int) -> None:
        """Make a file's content and length durable; the queue owns the descriptor from now on and closes it."""
        if self._failure is not None:
            os.close(fd)
            return
        self._gathering.fds.append(fd)
        self._pump()

    def when_durable(self, callback: Durable) -> None:
        """Call back once everything queued so far is on the disk: at once if it is."""
        if self._failure is not None or self.is_idle:
            callback(self._failure)
        else:
            self._waiting.append(callback)
            self._pump()

    def forget_dir(self, path: str) -> list[str]:
        """Drop what is queued below a directory that is to be renamed or removed; returns the names of the files.

        What is under way is not for a directory that gets the same name next.
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
        """Write what was kept, as there may be space now."""
        if not self._gathering.is_empty:
            self._pump()

    def fail(self, error: OSError) -> None:
        """The directory has failed: what is queued is dropped, for its state is no longer known to be true."""
        if self._failure is None:
            self._failure = error
        dropped, self._gathering = self._gathering, Batch()
        for fd in dropped.fds:
            os.close(fd)
        self._call_back(self._failure)

    def drain(self) -> None:
        """Store what is queued, here and now: for shutdown, when there is no loop to stall.

        A batch that waits for its worker is stored here, before the younger one; the worker finds nothing to do.
        Raises: OSError, also for what is kept because there is no space.
        """
        gathered, self._gathering = self._gathering.settle(), Batch()
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
        batch = self._in_flight = self._gathering.settle()
        self._gathering = Batch()
        waiting, self._waiting = self._waiting, []

        def done(result: OSError | None) -> None:
            self._in_flight = None
            if isinstance(result, OSError):
                self._failure = result
                self._on_failure(result)
                self.fail(result)
            elif batch.no_space is not None:
                # What was queued meanwhile is younger.
                self._gathering.files = batch.kept | self._gathering.files
                self._gathering.dirs = batch.kept_dirs | self._gathering.dirs
                self._on_full(batch.no_space)
            for callback in waiting:
                callback(self._failure or batch.no_space)
            if batch.no_space is None or self._waiting:
                self._pump()

        self._io_pool.submit(lambda: self._store(batch), done)

    def _store(self, batch: Batch) -> None:
        """The worker's part, at most once for each batch."""
        with self._lock:
            if not batch.is_stored:
                batch.is_stored = True
                _store(self._fs, batch)

    def _call_back(self, failure: OSError | None) -> None:
        waiting, self._waiting = self._waiting, []
        for callback in waiting:
            callback(failure)


def _store(fs: FileSystem, batch: Batch) -> None:
    """Write and fsync the files, then fsync what was written elsewhere, then the directories that name them."""
    try:
        changed_dirs = dict(batch.dirs)
        for path, content in batch.files.items():
            assert isinstance(content, bytes), "a batch is settled before it is stored"
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
                continue  # the directory was renamed or removed meanwhile, and its owner queued the file anew
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
    """Write and fsync a temporary file, leaving none if there is no space or descriptor: then that is the answer."""
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
