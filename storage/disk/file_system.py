"""The port between the logs and the disk: every change of a file or directory goes through a `FileSystem`.

Crash and fault tests replace it by an implementation that tracks which data is synced, or that fails on demand. Reads
do not go through it, except for mapped files.

Invariants: an append writes all of its bytes or raises; `replace_file` leaves the old or the new content under the
name, never a mixture; a rename is durable only after `sync_dir` of its directory.
"""

from __future__ import annotations

import contextlib
import errno
import mmap
import os
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    Bytes = bytes | bytearray | memoryview


def may_exist(path: str) -> bool:
    """Whether `path` is there, or cannot be examined because of an error of the disk.

    `os.path.exists` is False for both no file and an error. A caller that then makes the file, and removes it again
    when that fails, would remove the data of a log whose disk had one error.
    """
    try:
        os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


class FileSystem(Protocol):
    """The file operations of the storage layer. Paths are absolute; files are descriptors. All raise OSError."""

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> int: ...

    def append(self, fd: int, parts: Sequence[Bytes], position: int) -> int:
        """Write all parts at `position`; returns their total size in bytes."""

    def truncate(self, fd: int, size: int) -> None: ...

    def allocate(self, fd: int, position: int, size: int) -> None:
        """Allocate disk blocks for the range, so that a later write through a mapping cannot run out of space."""

    def map(self, fd: int, size: int) -> mmap.mmap:
        """Map the file's first `size` bytes, shared and writable."""

    def sync(self, fd: int) -> None: ...

    def sync_path(self, path: str) -> None:
        """fsync a file by name; a missing file is no error."""

    def sync_dir(self, path: str) -> None: ...

    def rename(self, source: str, target: str) -> None: ...

    def unlink(self, path: str) -> None:
        """Remove a file; a missing file is no error."""

    def make_dir(self, path: str) -> None: ...

    def remove_tree(self, path: str) -> None: ...

    def replace_file(self, path: str, content: bytes, *, sync: bool = True) -> None:
        """Replace the content of `path` through `<path>.tmp`: write, fsync, rename, fsync the directory."""

    def write_file(self, path: str, content: bytes, *, sync: bool = False) -> None:
        """Write a file in place, from its beginning."""

    def set_modified(self, path: str, modified_ns: int) -> None: ...

    def space(self, path: str) -> tuple[int, int]:
        """The free and the total bytes of the disk of `path` (total 0: unknown)."""


class OsFileSystem:
    """The real disk."""

    __slots__ = ()

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> int:
        flags = (os.O_RDWR if writable else os.O_RDONLY) | os.O_CLOEXEC
        return os.open(path, flags | os.O_CREAT if create else flags, 0o644)

    def append(self, fd: int, parts: Sequence[Bytes], position: int) -> int:
        total = sum(map(len, parts))
        written = os.pwritev(fd, parts, position)
        if written != total:
            self._append_rest(fd, parts, position, written)
        return total

    def _append_rest(self, fd: int, parts: Sequence[Bytes], position: int, written: int) -> None:
        """Continue after a short write: a signal, or a disk that is nearly full, where the next write raises."""
        rest = memoryview(b"".join(parts))
        while written < len(rest):
            count = os.pwrite(fd, rest[written:], position + written)
            if count == 0:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            written += count

    def truncate(self, fd: int, size: int) -> None:
        os.ftruncate(fd, size)

    def allocate(self, fd: int, position: int, size: int) -> None:
        os.posix_fallocate(fd, position, size)

    def map(self, fd: int, size: int) -> mmap.mmap:
        return mmap.mmap(fd, size)

    def sync(self, fd: int) -> None:
        os.fsync(fd)

    def sync_path(self, path: str) -> None:
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            return
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def sync_dir(self, path: str) -> None:
        self.sync_path(path)

    def rename(self, source: str, target: str) -> None:
        os.replace(source, target)

    def unlink(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)

    def make_dir(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def remove_tree(self, path: str) -> None:
        """Remove a partition directory. A broker creates no subdirectories there, but others may."""
        try:
            names = os.listdir(path)
        except FileNotFoundError:
            return
        for name in names:
            child = os.path.join(path, name)
            if os.path.isdir(child) and not os.path.islink(child):
                self.remove_tree(child)
            else:
                self.unlink(child)
        os.rmdir(path)

    def replace_file(self, path: str, content: bytes, *, sync: bool = True) -> None:
        temporary = path + ".tmp"
        self.write_file(temporary, content, sync=sync)
        self.rename(temporary, path)
        if sync:
            self.sync_dir(os.path.dirname(path))

    def write_file(self, path: str, content: bytes, *, sync: bool = False) -> None:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        try:
            if content:
                self.append(fd, [content], 0)
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)

    def set_modified(self, path: str, modified_ns: int) -> None:
        os.utime(path, ns=(modified_ns, modified_ns))

    def space(self, path: str) -> tuple[int, int]:
        found = os.statvfs(path)
        return found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize
