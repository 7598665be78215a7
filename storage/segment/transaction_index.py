"""The `.txnindex` file of a segment: its aborted transactions, for readers of committed data.

Entries are appended when an abort marker is written, so that they are ordered by last offset. The first entry creates
the file; most segments have none. Its bytes stay in memory after the first read.

Kafka: TransactionIndex, AbortedTxn.
"""

from __future__ import annotations

import os
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.storage.disk.file_system import may_exist

if TYPE_CHECKING:
    from collections.abc import Iterator

    from odradek.storage.disk.file_system import FileSystem
    from odradek.storage.disk.open_files import OpenFiles

ENTRY: Final = Struct(">hqqqq")
CURRENT_VERSION: Final = 0


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

    __slots__ = ("_content", "_fs", "_open_files", "path", "start_offset")

    def __init__(self, path: str, start_offset: int, fs: FileSystem, open_files: OpenFiles) -> None:
        self.path = path
        self.start_offset = start_offset
        self._fs = fs
        self._open_files = open_files
        self._content: bytearray | None = None

    def append(self, *aborted: AbortedTxn) -> None:
        """Add all entries, or none if there is no space. Raises OSError."""
        content = self._load()
        if content and (last := self._last(content)).last_offset >= aborted[0].last_offset:
            raise ValueError(
                f"The last offset of appended transactions must increase sequentially, but {aborted[0].last_offset} is "
                f"not greater than current last offset {last.last_offset} of index {self.path}"
            )
        data = b"".join(ENTRY.pack(CURRENT_VERSION, *txn) for txn in aborted)
        fd = self._open(create=True)
        try:
            self._fs.append(fd, [data], len(content))
        except OSError:
            self._fs.truncate(fd, len(content))  # a partial entry would make the index corrupt
            raise
        finally:
            os.close(fd)
        content += data

    def __iter__(self) -> Iterator[AbortedTxn]:
        return self._from(0)

    def _from(self, slot: int) -> Iterator[AbortedTxn]:
        data = self._load()
        whole = len(data) - len(data) % ENTRY.size  # the broker may be appending while a worker reads
        content = memoryview(bytes(data[slot * ENTRY.size : whole]))
        for version, *fields in ENTRY.iter_unpack(content):
            if version != CURRENT_VERSION:
                raise CorruptIndexError(f"Unexpected aborted transaction version {version} in {self.path}")
            yield AbortedTxn(*fields)

    def collect(self, fetch_offset: int, upper_bound: int) -> tuple[list[AbortedTxn], bool]:
        """The transactions that overlap [fetch_offset, upper_bound), and whether no later segment can add any.

        Kafka: TransactionIndex.collectAbortedTxns.
        """
        found = []
        for aborted in self._from(self._first_ending_at(fetch_offset)):
            if aborted.first_offset < upper_bound:
                found.append(aborted)
            if aborted.last_stable_offset >= upper_bound:
                return found, True
        return found, False

    def _first_ending_at(self, offset: int) -> int:
        """The slot of the first transaction whose marker is at or above `offset`."""
        content = self._load()
        low, high = 0, len(content) // ENTRY.size
        while low < high:
            middle = (low + high) // 2
            if ENTRY.unpack_from(content, middle * ENTRY.size)[3] < offset:
                low = middle + 1
            else:
                high = middle
        return low

    @property
    def is_empty(self) -> bool:
        return not self._load()

    def sanity_check(self) -> None:
        """Raise CorruptIndexError for a partial entry, or for an entry below the base offset."""
        content = self._load()
        if len(content) % ENTRY.size:
            raise CorruptIndexError(f"{self.path} has {len(content)} bytes, not a multiple of {ENTRY.size}")
        for aborted in self:
            if aborted.last_offset < self.start_offset:
                raise CorruptIndexError(
                    f"Last offset of aborted transaction {aborted} in index {self.path} is less than start offset "
                    f"{self.start_offset}"
                )

    def truncate_to(self, offset: int) -> None:
        """Remove the transactions whose marker is at or above `offset`."""
        content = self._load()
        keep = sum(1 for aborted in self if aborted.last_offset < offset) * ENTRY.size
        if keep < len(content):
            fd = self._open()
            try:
                self._fs.truncate(fd, keep)
            finally:
                os.close(fd)
            del content[keep:]

    def clear(self) -> None:
        """Remove all entries and the file."""
        if may_exist(self.path):
            self._fs.unlink(self.path)
        self._content = bytearray()

    def rename_to(self, path: str) -> None:
        if may_exist(self.path):
            self._fs.rename(self.path, path)
        self.path = path

    def open_for_sync(self) -> int | None:
        try:
            return self._open()
        except FileNotFoundError:
            return None

    def _open(self, *, create: bool = False) -> int:
        return self._open_files.retry(lambda: self._fs.open(self.path, create=create))

    def _load(self) -> bytearray:
        if self._content is None:
            try:
                with self._open_files.retry(lambda: open(self.path, "rb")) as file:
                    self._content = bytearray(file.read())
            except FileNotFoundError:
                self._content = bytearray()
        return self._content

    def _last(self, content: bytearray) -> AbortedTxn:
        _, *fields = ENTRY.unpack_from(content, len(content) - ENTRY.size)
        return AbortedTxn(*fields)
