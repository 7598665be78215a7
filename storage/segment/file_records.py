"""The records of one segment: a file that only grows at its end, and regions of it.

`FileRecords` appends with one vectored write (the rewritten 16-byte prefix and the untouched rest of a batch), finds
positions by reading batch headers only, and hands out `FileRegion`s, which name bytes without reading them: the network
layer gives them to the kernel. A region that is being sent pins the descriptor, because a closed descriptor's number is
soon another file's.

Invariants: `size` counts whole batches only (a write that failed half-way leaves bytes beyond it that nothing reads and
the next append overwrites); the file on disk is at least `size` long while the log is open.

Kafka: org.apache.kafka.common.record.FileRecords and FileLogInputStream.
"""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch import AnyBatch, RecordBatch, view_batch
from odradek.protocol.records.layout import BATCH_OVERHEAD, LOG_OVERHEAD, MAGIC_POSITION, MAGIC_V2

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from odradek.storage.disk.file_system import Bytes, FileSystem
    from odradek.storage.disk.open_files import OpenFiles

HEADER_PEEK: Final = 27
"""Bytes that tell a batch's offsets: up to and including lastOffsetDelta of format 2."""

MIN_HEADER: Final = 17
"""Up to and including the magic byte. Fewer bytes at the end of a file are a torn tail."""

MIN_BATCH_LENGTH: Final = 14
"""The smallest length a message may declare (magic 0 with null key and value)."""

SEQUENTIAL_READ_BYTES: Final = 1024 * 1024
"""Read at once when the batches themselves are wanted, as in recovery."""

SCAN_BYTES: Final = 4096
"""Read at once while walking headers: the default distance of two index entries."""

_PEEK = struct.Struct(">qiiBIHi")  # base offset, length, epoch, magic, crc, attributes, lastOffsetDelta
_PEEK_SHORT = struct.Struct(">qiiB")


class BatchPosition(NamedTuple):
    """Where a batch lies in its file and which offsets it covers."""

    base_offset: int
    last_offset: int
    position: int
    size: int


class CorruptLogError(KafkaError):
    """The file holds something that cannot be a batch."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.CORRUPT_MESSAGE, message)


class FileRecords:
    """The `.log` file of a segment."""

    __slots__ = ("_closed", "_fd", "_fs", "_open_files", "_pins", "path", "size")

    def __init__(self, path: str, fs: FileSystem, open_files: OpenFiles, size: int) -> None:
        self.path = path
        self.size = size
        self._fs = fs
        self._open_files = open_files
        self._fd = -1
        self._pins = 0
        self._closed = False

    @classmethod
    def create(cls, path: str, fs: FileSystem, open_files: OpenFiles, preallocate: int = 0) -> FileRecords:
        """Make the file if it is missing, of `preallocate` bytes on disk. Nothing is in it yet."""
        records = cls(path, fs, open_files, 0)
        records._fd = open_files.opening(records, lambda: fs.open(path, create=True))
        if preallocate:
            try:
                fs.allocate(records._fd, 0, preallocate)
            except OSError:
                records.close()
                raise
        return records

    @classmethod
    def existing(cls, path: str, fs: FileSystem, open_files: OpenFiles) -> FileRecords:
        """The records of a file that is there; it is opened when it is first used."""
        return cls(path, fs, open_files, os.stat(path).st_size)

    def fileno(self) -> int:
        """The descriptor, opened if need be. It may be closed again at any later open: pin it to keep it."""
        if self._fd < 0:
            self._fd = self._open_files.opening(self, lambda: self._fs.open(self.path))
        else:
            self._open_files.touch(self)
        return self._fd

    def append(self, parts: Sequence[Bytes]) -> int:
        """Add whole batches at the end and answer how many bytes they are."""
        fd = self._fd
        if fd < 0:
            fd = self.fileno()
        count = self._fs.append(fd, parts, self.size)
        self.size += count
        return count

    def read(self, position: int, size: int) -> bytes:
        """Copy bytes out of the file; shorter than asked at its end."""
        return os.pread(self.fileno(), max(0, min(size, self.size - position)), position)

    def region(self, position: int, size: int) -> FileRegion:
        """Name up to `size` bytes from `position` on."""
        return FileRegion(self, position, max(0, min(size, self.size - position)))

    def positions(self, start: int = 0, end: int | None = None) -> Iterator[BatchPosition]:
        """Walk the batch headers from a batch boundary on; stops silently at a torn tail, like Kafka's reader."""
        limit = self.size if end is None else min(end, self.size)
        position = start
        chunk = b""
        chunk_start = position
        while limit - position > MIN_HEADER:
            at = position - chunk_start
            if at + HEADER_PEEK > len(chunk):
                chunk, chunk_start, at = os.pread(self.fileno(), SCAN_BYTES, position), position, 0
                if len(chunk) < MIN_HEADER:
                    return
            if at + HEADER_PEEK <= len(chunk):
                base_offset, length, _, magic, _, _, last_delta = _PEEK.unpack_from(chunk, at)
            else:  # a message of an old format at the very end can be shorter than the header of a batch
                base_offset, length, _, magic = _PEEK_SHORT.unpack_from(chunk, at)
                last_delta = 0
            if length < MIN_BATCH_LENGTH:
                raise CorruptLogError(
                    f"Found record size {length} smaller than minimum record overhead ({MIN_BATCH_LENGTH}) "
                    f"in file {self.path}."
                )
            size = LOG_OVERHEAD + length
            if position + size > limit:
                return
            last_offset = base_offset + last_delta if magic >= 2 else base_offset
            yield BatchPosition(base_offset, last_offset, position, size)
            position += size

    def find_offset(self, target: int, start: int = 0) -> BatchPosition | None:
        """The first batch at or after position `start` whose last offset is at least `target`."""
        # On the path of every fetch, hence the loop over one chunk before falling back to the general walk.
        position = start
        chunk = os.pread(self.fileno(), min(SCAN_BYTES, max(0, self.size - start)), start)
        at, end = 0, len(chunk) - HEADER_PEEK
        while at <= end:
            base_offset, length, _, magic, _, _, last_delta = _PEEK.unpack_from(chunk, at)
            size = LOG_OVERHEAD + length
            if length < MIN_BATCH_LENGTH or position + size > self.size:
                break
            last_offset = base_offset + last_delta if magic >= MAGIC_V2 else base_offset
            if last_offset >= target:
                return BatchPosition(base_offset, last_offset, position, size)
            position += size
            at += size
        for batch in self.positions(position):
            if batch.last_offset >= target:
                return batch
        return None

    def header_at(self, where: BatchPosition) -> AnyBatch:
        """A view of the batch that knows its header only (old formats: all of it)."""
        buffer = memoryview(os.pread(self.fileno(), min(BATCH_OVERHEAD, where.size), where.position))
        return RecordBatch(buffer) if buffer[MAGIC_POSITION] >= MAGIC_V2 else self.batch_at(where)

    def batch_at(self, where: BatchPosition) -> AnyBatch:
        """A view of the whole batch."""
        return view_batch(memoryview(os.pread(self.fileno(), where.size, where.position)))

    def batches(
        self, start: int = 0, sequential_read_bytes: int = SEQUENTIAL_READ_BYTES
    ) -> Iterator[tuple[int, AnyBatch]]:
        """Read the whole file from a batch boundary on: positions and batches, up to a torn tail.

        So many bytes are read at once, or as many as the next batch has.
        """
        position = start
        read_bytes = sequential_read_bytes
        while self.size - position > MIN_HEADER:
            chunk = memoryview(os.pread(self.fileno(), min(read_bytes, self.size - position), position))
            at, end, size = 0, len(chunk), 0
            while end - at >= MIN_HEADER:
                _, length, _, magic = _PEEK_SHORT.unpack_from(chunk, at)
                if length < MIN_BATCH_LENGTH or magic > MAGIC_V2:
                    raise CorruptLogError(
                        f"Found a batch of {length} bytes with magic {magic} at byte {position + at} of {self.path}."
                    )
                size = LOG_OVERHEAD + length
                if size > end - at:
                    break
                yield position + at, view_batch(chunk[at : at + size])
                at += size
            if not at and (end < MIN_HEADER or position + size > self.size):
                return
            position += at
            read_bytes = max(sequential_read_bytes, size)

    def truncate_to(self, size: int) -> int:
        """Cut the file and return the number of bytes that went."""
        if size > self.size or size < 0:
            raise ValueError(f"cannot truncate {self.path} of {self.size} bytes to {size}")
        cut = self.size - size
        if cut or os.fstat(self.fileno()).st_size != size:
            self._fs.truncate(self.fileno(), size)
            self.size = size
        return cut

    def cut_back(self, size: int) -> None:
        """Undo an append, written half or whole: the file ends at `size` again."""
        self._fs.truncate(self.fileno(), size)
        self.size = size

    def trim(self) -> None:
        """Give back what was preallocated beyond the last batch."""
        if os.fstat(self.fileno()).st_size > self.size:
            self._fs.truncate(self.fileno(), self.size)

    def rename_to(self, path: str) -> None:
        self._fs.rename(self.path, path)
        self.path = path

    def duplicate_fd(self) -> int:
        """A descriptor of the caller's own, to sync the file elsewhere while this one may be closed."""
        fd = self.pin()
        try:
            return self._open_files.retry(lambda: os.dup(fd))
        finally:
            self.unpin()

    def pin(self) -> int:
        """Open the file and keep it open until as many `unpin`s."""
        fd = self.fileno()
        self._pins += 1
        return fd

    def pin_for_client(self) -> int:
        """As `pin`, but the file is not opened with one of the last descriptors, for it may stay open for long."""
        if self._fd < 0:
            self._fd = self._open_files.opening_for_client(self, lambda: self._fs.open(self.path))
        return self.pin()

    def unpin(self) -> None:
        self._pins -= 1
        if self._closed and not self._pins:
            self._close_fd()

    def evict(self) -> bool:
        if self._pins:
            return False
        self._close_fd()
        return True

    def close(self) -> None:
        """Let go of the descriptor; a region still being sent keeps it until it is released."""
        self._open_files.closed(self)
        self._closed = True
        if not self._pins:
            self._close_fd()

    def _close_fd(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


class FileRegion:
    """A run of bytes of a segment file, to be sent or read. Implements `protocol.schema.RecordsRegion`."""

    __slots__ = ("_pinned", "position", "records", "size_in_bytes")

    def __init__(self, records: FileRecords, position: int, size_in_bytes: int) -> None:
        self.records = records
        self.position = position
        self.size_in_bytes = size_in_bytes
        self._pinned = 0

    def __len__(self) -> int:
        return self.size_in_bytes

    def fileno(self) -> int:
        return self.records.fileno()

    def read(self) -> bytes:
        """The bytes themselves, for transports that cannot be handed a file. Short if the file was cut meanwhile."""
        return self.records.read(self.position, self.size_in_bytes)

    def retain(self) -> None:
        """Keep the descriptor open and its number ours until `release`. Raises: OSError EMFILE."""
        self.records.pin_for_client()
        self._pinned += 1

    def release(self) -> None:
        if self._pinned:
            self._pinned -= 1
            self.records.unpin()
