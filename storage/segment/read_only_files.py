"""Read-only access to the files of a log that a running broker may own.

An index is copied instead of mapped: the broker may truncate the file at any time, and an access after the new end of a
real mapping raises SIGBUS. `FileRecords`, `OffsetIndex` and `TimeIndex` work with this file system as in a broker;
writes fail, because descriptors are read-only.
"""

from __future__ import annotations

import mmap
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from odradek.storage.disk.file_system import OsFileSystem
from odradek.storage.disk.open_files import OpenFiles
from odradek.storage.segment.file_records import FileRecords
from odradek.storage.segment.offset_index import OffsetIndex
from odradek.storage.segment.time_index import TimeIndex

if TYPE_CHECKING:
    from collections.abc import Iterator


class ReadOnlyFileSystem(OsFileSystem):
    """The real disk, with files opened for reading only."""

    __slots__ = ()

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> int:
        return super().open(path, writable=False)

    def map(self, fd: int, size: int) -> mmap.mmap:
        copy = mmap.mmap(-1, size)
        copy.write(os.pread(fd, size, 0))
        return copy


@contextmanager
def open_records(path: str) -> Iterator[FileRecords]:
    """The batches of a `.log` file up to its present length. Raises OSError for a missing file."""
    records = FileRecords.existing(path, ReadOnlyFileSystem(), OpenFiles())
    try:
        yield records
    finally:
        records.close()


def open_offset_index(path: str, base_offset: int) -> OffsetIndex:
    """The entries of an `.index` file, zero fill included. Raises OSError for a missing file."""
    os.stat(path)  # OffsetIndex treats a missing file as empty
    return OffsetIndex(path, base_offset, 0, ReadOnlyFileSystem(), OpenFiles())


def open_time_index(path: str, base_offset: int) -> TimeIndex:
    """The entries of a `.timeindex` file, zero fill included. Raises OSError for a missing file."""
    os.stat(path)
    return TimeIndex(path, base_offset, 0, ReadOnlyFileSystem(), OpenFiles())
