"""A disk that fails at the n-th change of a file: by an error the broker sees, or by the end of the process.

Every mutation of the storage layer goes through `FileSystem`, so counting its calls numbers all the points at which a
process can die between two of them. A write that fails stores half of its bytes first. Nothing is really synced,
because the kernel outlives the process (`simulated_disk` is for the loss of power).
"""

from __future__ import annotations

import errno
import mmap
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from odradek.storage.disk.file_system import OsFileSystem

if TYPE_CHECKING:
    from odradek.storage.disk.file_system import Bytes

CHANGES: Final = frozenset(
    {"create", "append", "truncate", "allocate", "sync", "rename", "unlink", "make", "remove", "write"}
)
"""The kinds of operations that change what is on the disk: the first word of their names."""

NEEDS_ROOM: Final = frozenset({"create", "append", "allocate", "make", "write"})
SYNCS: Final = frozenset({"sync"})
OPENS: Final = frozenset({"open", "create", "map", "write"})
"""What takes a descriptor, if only for a moment."""

PLENTY: Final = (2**40, 2**41)


class CrashError(BaseException):
    """The process ends here. Not an Exception, so that nothing catches it."""


def crash() -> BaseException:
    return CrashError()


def io_error() -> BaseException:
    return OSError(errno.EIO, os.strerror(errno.EIO))


def disk_full() -> BaseException:
    return OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def too_many_files() -> BaseException:
    return OSError(errno.EMFILE, os.strerror(errno.EMFILE))


class FaultyFileSystem:
    """Counts the operations of some `kinds`, and raises at the one numbered `fail_at` (from 1).

    Later ones fail as well (`for_good`), or work again. `mend` ends the failures.
    """

    def __init__(
        self,
        fail_at: int = 0,
        failure: Callable[[], BaseException] = crash,
        *,
        for_good: bool = True,
        kinds: frozenset[str] = CHANGES,
    ) -> None:
        self.fail_at = fail_at
        self.failure = failure
        self.for_good = for_good
        self.kinds = kinds
        self.count = 0
        self.operations: list[str] = []
        self._disk = OsFileSystem()

    def mend(self) -> None:
        self.fail_at = 0

    @property
    def failed(self) -> str:
        """The operation that failed first; empty if none did."""
        return self.operations[self.fail_at - 1] if 0 < self.fail_at <= self.count else ""

    def _step(self, name: str) -> bool:
        """Count one operation; whether it fails."""
        if name.split()[0] not in self.kinds:
            return False
        self.count += 1
        self.operations.append(name)
        return bool(self.fail_at) and (self.count == self.fail_at or (self.for_good and self.count > self.fail_at))

    def _check(self, name: str) -> None:
        if self._step(name):
            raise self.failure()

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> int:
        self._check(("create " if create else "open ") + os.path.basename(path))
        return self._disk.open(path, create=create, writable=writable)

    def append(self, fd: int, parts: Sequence[Bytes], position: int) -> int:
        if self._step("append"):
            data = b"".join(parts)
            os.pwrite(fd, data[: len(data) // 2], position)
            raise self.failure()
        return self._disk.append(fd, parts, position)

    def truncate(self, fd: int, size: int) -> None:
        self._check("truncate")
        self._disk.truncate(fd, size)

    def allocate(self, fd: int, position: int, size: int) -> None:
        if self._step("allocate"):
            os.ftruncate(fd, position + size // 2)
            raise self.failure()
        self._disk.allocate(fd, position, size)

    def map(self, fd: int, size: int) -> mmap.mmap:
        self._check("map")
        return self._disk.map(fd, size)

    def sync(self, fd: int) -> None:
        self._check("sync")

    def sync_path(self, path: str) -> None:
        self._check("sync " + os.path.basename(path))

    def sync_dir(self, path: str) -> None:
        self._check("sync dir")

    def rename(self, source: str, target: str) -> None:
        self._check("rename " + os.path.basename(source))
        self._disk.rename(source, target)

    def unlink(self, path: str) -> None:
        self._check("unlink " + os.path.basename(path))
        self._disk.unlink(path)

    def make_dir(self, path: str) -> None:
        if not os.path.isdir(path):
            self._check("make dir")
        self._disk.make_dir(path)

    def remove_tree(self, path: str) -> None:
        self._check("remove tree")
        self._disk.remove_tree(path)

    def replace_file(self, path: str, content: bytes, *, sync: bool = True) -> None:
        self.write_file(path + ".tmp", content, sync=sync)
        self.rename(path + ".tmp", path)
        if sync:
            self.sync_dir(os.path.dirname(path))

    def write_file(self, path: str, content: bytes, *, sync: bool = False) -> None:
        if self._step("write " + os.path.basename(path)):
            self._disk.write_file(path, content[: len(content) // 2])
            raise self.failure()
        self._disk.write_file(path, content)
        if sync:
            self.sync_path(path)

    def set_modified(self, path: str, modified_ns: int) -> None:
        self._disk.set_modified(path, modified_ns)

    def space(self, path: str) -> tuple[int, int]:
        return PLENTY
