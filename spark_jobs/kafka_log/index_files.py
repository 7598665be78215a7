"""Lookups in the `.index` and `.timeindex` files of a segment that a broker may be writing.

Entries are read one by one: a file of a live segment of Apache Kafka has 10 MiB, most of it zeros behind the entries.
The files may be cut or replaced at any moment, so that a lookup is a hint: the caller checks that a batch begins at the
position. Without an answer, a segment is read from its beginning.

Kafka: OffsetIndex.lookup, TimeIndex.lookup.
"""

from __future__ import annotations

import os
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from struct import Struct
from typing import Final

OFFSET_ENTRY: Final = Struct(">ii")
TIME_ENTRY: Final = Struct(">qi")


class IndexFile:
    """An open index with entries that are sorted by their first field."""

    def __init__(self, fd: int, entry: Struct) -> None:
        self._fd = fd
        self._entry = entry
        self._zeros = bytes(entry.size)
        self.entries = self._count(os.fstat(fd).st_size // entry.size)

    def _count(self, slots: int) -> int:
        """The entries in front of the zeros that an index of a live segment ends with."""
        return bisect_left(range(slots), True, key=lambda slot: self._bytes(slot) in (self._zeros, b""))

    def _bytes(self, slot: int) -> bytes:
        return os.pread(self._fd, self._entry.size, slot * self._entry.size)

    def entry(self, slot: int) -> tuple[int, int]:
        """Both fields; zeros if the file was cut meanwhile."""
        content = self._bytes(slot)
        first, second = self._entry.unpack(content if len(content) == self._entry.size else self._zeros)
        return first, second

    def floor(self, field: int, target: int) -> tuple[int, int] | None:
        """The last entry whose field 0 or 1 is at most `target`. Both grow from entry to entry."""
        slot = self._first_above(field, target)
        return self.entry(slot - 1) if slot else None

    def above(self, field: int, target: int) -> tuple[int, int] | None:
        """The first entry whose field 0 or 1 is larger than `target`."""
        slot = self._first_above(field, target)
        return self.entry(slot) if slot < self.entries else None

    def _first_above(self, field: int, target: int) -> int:
        return bisect_right(range(self.entries), target, key=lambda slot: self.entry(slot)[field])

    def last(self) -> tuple[int, int] | None:
        return self.entry(self.entries - 1) if self.entries else None


@contextmanager
def open_index(path: str, entry: Struct) -> Iterator[IndexFile | None]:
    """The index at a path; None if it cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield IndexFile(fd, entry)
    finally:
        os.close(fd)
