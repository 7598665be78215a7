"""The `.txnindex` file of a segment: its aborted transactions, for readers of committed data.

Entries are appended when an abort marker is written, so that they are ordered by last offset. The first entry creates
the file; most segments have none. Only the size and the last offset stay in memory: the entries are read from the file,
a few at a time, by who needs them.

Kafka: TransactionIndex, AbortedTxn.
"""

from __future__ import annotations

import os
from contextlib import closing
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.disk.file_system import may_exist

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from odradek.storage.disk.file_system import FileSystem
    from odradek.storage.disk.open_files import OpenFiles

ENTRY: Final = Struct(">hqqqq")
CURRENT_VERSION: Final = 0

ENTRIES_A_READ: Final = 120
"""4 KiB: a fetch needs a few entries, and a page is the least that comes from the disk."""


class CorruptIndexError(KafkaError):
    """An index has invalid content; a start rebuilds the segment's indexes."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, message)


class AbortedTxn(NamedTuple):
    """One aborted transaction: its data lies in [first_offset, last_offset], and `last_offset` is its marker."""

    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


class TransactionIndex:
    """The aborted transactions of one segment."""

    __slots__ = ("_fs", "_last_offset", "_open_files", "_size", "path", "start_offset")

    def __init__(self, path: str, start_offset: int, fs: FileSystem, open_files: OpenFiles) -> None:
        self.path = path
        self.start_offset = start_offset
        self._fs = fs
        self._open_files = open_files
        self._size = -1  # not loaded yet
        self._last_offset = -1
        """The marker of the last entry. Call `_load` before."""

    def append(self, *aborted: AbortedTxn) -> None:
        """Add all entries, or none if there is no space. Raises OSError."""
        size = self._load()
        if size and self._last_offset >= aborted[0].last_offset:
            raise ValueError(
                f"The last offset of appended transactions must increase sequentially, but {aborted[0].last_offset} is "
                f"not greater than current last offset {self._last_offset} of index {self.path}"
            )
        data = b"".join(ENTRY.pack(CURRENT_VERSION, *txn) for txn in aborted)
        fd = self._open(create=True)
        try:
            self._fs.append(fd, [data], size)
        except OSError:
            self._fs.truncate(fd, size)  # a partial entry would make the index corrupt
            raise
        finally:
            os.close(fd)
        self._last_offset = aborted[-1].last_offset
        self._size = size + len(data)

    def __iter__(self) -> Iterator[AbortedTxn]:
        return self._from(None)

    def _from(self, offset: int | None) -> Generator[AbortedTxn, None, None]:
        """The transactions whose marker is at or above `offset`; None for all. Close it to close the file.

        Raises: CorruptIndexError; OSError.
        """
        entries = self._load() // ENTRY.size  # the broker may be appending while a worker reads
        if not entries:
            return
        fd = self._open_known()
        try:
            slot = 0 if offset is None else self._first_ending_at(fd, offset, entries)
            while slot < entries:
                count = min(ENTRIES_A_READ, entries - slot)
                for version, *fields in ENTRY.iter_unpack(self._read(fd, slot, count)):
                    if version != CURRENT_VERSION:
                        raise CorruptIndexError(f"Unexpected aborted transaction version {version} in {self.path}")
                    yield AbortedTxn(*fields)
                slot += count
        finally:
            os.close(fd)

    def collect(self, fetch_offset: int, upper_bound: int) -> tuple[list[AbortedTxn], bool]:
        """The transactions that overlap [fetch_offset, upper_bound), and whether no later segment can add any.

        Raises: CorruptIndexError; OSError. Kafka: TransactionIndex.collectAbortedTxns.
        """
        found: list[AbortedTxn] = []
        if not self._load() or self._last_offset < fetch_offset:  # most segments, for most fetches
            return found, False
        with closing(self._from(fetch_offset)) as transactions:
            for aborted in transactions:
                if aborted.first_offset < upper_bound:
                    found.append(aborted)
                if aborted.last_stable_offset >= upper_bound:
                    return found, True
        return found, False

    def _first_ending_at(self, fd: int, offset: int, entries: int) -> int:
        """The slot of the first transaction whose marker is at or above `offset`."""
        low, high = 0, entries
        while low < high:
            middle = (low + high) // 2
            if self._last_offset_at(fd, middle) < offset:
                low = middle + 1
            else:
                high = middle
        return low

    @property
    def is_empty(self) -> bool:
        return not self._load()

    def sanity_check(self) -> None:
        """Raise CorruptIndexError for a partial entry, or for an entry below the base offset."""
        size = self._load()
        if size % ENTRY.size:
            raise CorruptIndexError(f"{self.path} has {size} bytes, not a multiple of {ENTRY.size}")
        for aborted in self:
            if aborted.last_offset < self.start_offset:
                raise CorruptIndexError(
                    f"Last offset of aborted transaction {aborted} in index {self.path} is less than start offset "
                    f"{self.start_offset}"
                )

    def truncate_to(self, offset: int) -> None:
        """Remove the transactions whose marker is at or above `offset`. Raises OSError."""
        if not self._load() or self._last_offset < offset:
            return
        fd = self._open()
        try:
            kept = self._first_ending_at(fd, offset, self._size // ENTRY.size)
            last_offset = self._last_offset_at(fd, kept - 1) if kept else -1
            self._fs.truncate(fd, kept * ENTRY.size)
        finally:
            os.close(fd)
        self._size, self._last_offset = kept * ENTRY.size, last_offset

    def clear(self) -> None:
        """Remove all entries and the file."""
        if may_exist(self.path):
            self._fs.unlink(self.path)
        self._size, self._last_offset = 0, -1

    def rename_to(self, path: str) -> None:
        if may_exist(self.path):
            self._fs.rename(self.path, path)
        self.path = path

    def open_for_sync(self) -> int | None:
        try:
            return self._open()
        except FileNotFoundError:
            return None

    def _open(self, *, create: bool = False, writable: bool = True) -> int:
        return self._open_files.retry(lambda: self._fs.open(self.path, create=create, writable=writable))

    def _open_known(self) -> int:
        """Open a file that has entries. Who finds it gone must not take that for no aborted transactions."""
        try:
            return self._open(writable=False)
        except FileNotFoundError as error:
            raise CorruptIndexError(f"{self.path} had {self._size} bytes, and is not there") from error

    def _load(self) -> int:
        """The size of the file in bytes, from memory after the first call."""
        if self._size < 0:
            try:
                fd = self._open(writable=False)
            except FileNotFoundError:
                self._size = 0
                return 0
            try:
                size = os.fstat(fd).st_size
                if size >= ENTRY.size:
                    self._last_offset = self._last_offset_at(fd, size // ENTRY.size - 1)
            finally:
                os.close(fd)
            self._size = size
        return self._size

    def _last_offset_at(self, fd: int, slot: int) -> int:
        last_offset: int = ENTRY.unpack(self._read(fd, slot, 1))[3]
        return last_offset

    def _read(self, fd: int, slot: int, count: int) -> bytes:
        data = os.pread(fd, count * ENTRY.size, slot * ENTRY.size)
        if len(data) < count * ENTRY.size:
            raise CorruptIndexError(f"{self.path} ends before its entry {slot + count}")
        return data
