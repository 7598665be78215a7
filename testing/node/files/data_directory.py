"""Where a broker for tests has its data: in memory where the platform has a file system for that.

All directories of a user are in one parent, which only the user may read. The process that uses a directory holds a
lock (`flock`) on it; a lock falls with its process, however that ends. The next start of a broker removes directories
without a lock. Making and removing happen under the lock of the parent, so that nobody removes a directory between its
creation and its lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMORY_DIRECTORY: Final = "/dev/shm"

FREE_BYTES_MIN: Final = 256 * 1024 * 1024
"""With less free space, /dev/shm is not used. A container has 64 MiB there unless it is configured otherwise."""


def parent_directory(memory_directory: str = MEMORY_DIRECTORY) -> str:
    """The directory for all data of this user's brokers."""
    name = f"odradek-testing-{os.getuid()}"
    try:
        found = os.statvfs(memory_directory)
    except OSError:
        return os.path.join(_temporary_directory(), name)
    is_usable = found.f_bavail * found.f_frsize >= FREE_BYTES_MIN and os.access(memory_directory, os.W_OK | os.X_OK)
    return os.path.join(memory_directory if is_usable else _temporary_directory(), name)


class DataDirectory:
    """A directory that belongs to this process until `remove`."""

    __slots__ = ("_lock", "path")

    def __init__(self, parent: str | None = None) -> None:
        """Make the directory, and remove those of dead processes. Raises: OSError."""
        self.path = ""
        self._lock = -1
        parent = parent_directory() if parent is None else parent
        with _locked(parent):
            _remove_abandoned(parent)
            path = os.path.join(parent, os.urandom(8).hex())
            os.mkdir(path, 0o700)
            self.path = path
            self._lock = _lock(self.path)

    def clear(self) -> None:
        """Remove all that is in the directory."""
        for entry in os.scandir(self.path):
            _remove(entry.path)

    def remove(self) -> None:
        """Remove the directory with all that is in it. Does nothing when it is called again."""
        if self._lock >= 0:
            _remove(self.path)
            os.close(self._lock)
            self._lock = -1


def _remove_abandoned(parent: str) -> None:
    for entry in os.scandir(parent):
        try:
            lock = _lock(entry.path)
        except OSError:  # in use, or it has just been removed
            continue
        _remove(entry.path)
        os.close(lock)


def _temporary_directory() -> str:
    import tempfile  # here and below: modules that a start can do without

    return tempfile.gettempdir()


def _remove(path: str) -> None:
    import shutil

    shutil.rmtree(path, ignore_errors=True)


def _lock(path: str) -> int:
    """Lock a directory. Raises: BlockingIOError if another process or broker holds the lock."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


@contextlib.contextmanager
def _locked(parent: str) -> Iterator[None]:
    os.makedirs(parent, 0o700, exist_ok=True)
    descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
