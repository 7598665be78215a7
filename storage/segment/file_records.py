"""The records of one segment: a file that only grows at its end, and regions of it.

`FileRecords` appends with one vectored write (the new 16-byte prefix and the unchanged rest of a batch) and finds
positions by reading batch headers only. A `FileRegion` is a byte range that is not read: the network layer passes it to
sendfile. A region that is being sent pins the descriptor, because the number of a closed descriptor is reused for
another file.

A cut frees blocks, which takes up to 67 ms on a busy disk. So `cut_later` lowers `size` at once, and a thread truncates
the file (`FileCut`). What the file has beyond `size` until then are the records of before the cut: a process that dies
meanwhile leaves the log as it was, and the recovery point is at or below the cut.

Invariants: `size` counts whole batches only (a failed write may leave bytes after it, which are never read and which
the next append overwrites); the file on disk is at least `size` long while the log is open; nothing is written, and
no file is finished, before a cut is carried out.

Kafka: FileRecords, FileLogInputStream.
"""

from __future__ import annotations

import os
import struct
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.protocol.records.batch import AnyBatch, RecordBatch, view_batch
from odradek.protocol.records.errors import CorruptLogError
from odradek.protocol.records.layout import (
    BATCH_OVERHEAD,
    LEGACY_TIMESTAMP_POSITION,
    LOG_OVERHEAD,
    MAGIC_POSITION,
    MAGIC_V0,
    MAGIC_V2,
    NO_TIMESTAMP,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from odradek.storage.disk.file_system import Bytes, FileSystem
    from odradek.storage.disk.open_files import OpenFiles

HEADER_PEEK: Final = 43
"""The header bytes with a batch's offsets and largest timestamp: up to and including maxTimestamp of format 2."""

MIN_HEADER: Final = 17
"""Up to and including the magic byte. Fewer bytes at the end of a file are a torn tail."""

MIN_BATCH_LENGTH: Final = 14
"""The smallest length a message may declare (magic 0 with null key and value)."""

SEQUENTIAL_READ_BYTES: Final = 1024 * 1024
"""The chunk size when whole batches are read, as in recovery."""

SCAN_BYTES: Final = 4096
"""The chunk size when only headers are read: the default distance of two index entries."""

# base offset, length, epoch, magic, crc and attributes, lastOffsetDelta, baseTimestamp, maxTimestamp
_PEEK = struct.Struct(">qiiB6xi8xq")
_PEEK_SHORT = struct.Struct(">qiiB")
_LEGACY_TIMESTAMP = struct.Struct(">q")


class BatchPosition(NamedTuple):
    """Where a batch is, and what its header says about its records."""

    base_offset: int
    last_offset: int
    position: int
    size: int
    max_timestamp: int


class FileCut:
    """The truncation of a file, carried out once: by a thread, or by the event loop if that needs it before."""

    __slots__ = ("_fs", "_is_done", "_lock", "_size")

    def __init__(self, fs: FileSystem, size: int) -> None:
        self._fs = fs
        self._size = size
        self._is_done = False
        self._lock = Lock()
        """Whoever comes second waits: a truncation after the next append would remove its records."""

    def carry_out(self, fd: int) -> None:
        """`fd`: any descriptor of the file. Raises OSError."""
        with self._lock:
            if not self._is_done:
                self._fs.truncate(fd, self._size)
                self._is_done = True


class FileRecords:
    """The `.log` file of a segment."""

    __slots__ = ("_closed", "_fd", "_fs", "_open_files", "_pins", "cut", "path", "size")

    def __init__(self, path: str, fs: FileSystem, open_files: OpenFiles, size: int) -> None:
        self.path = path
        self.size = size
        self._fs = fs
        self._open_files = open_files
        self._fd = -1
        self._pins = 0
        self._closed = False
        self.cut: FileCut | None = None
        """To be carried out by a thread. It may be done already."""

    @classmethod
    def create(cls, path: str, fs: FileSystem, open_files: OpenFiles, preallocate: int = 0) -> FileRecords:
        """The records of a new file without batches, with a length of `preallocate` bytes. Raises OSError."""
        records = cls(path, fs, open_files, 0)
        records._fd = open_files.opening(records, lambda: fs.open(path, create=True))
        if preallocate:
            try:
                fs.truncate(records._fd, preallocate)
            except OSError:
                records.close()
                raise
        return records

    @classmethod
    def of_new_file(cls, path: str, fs: FileSystem, open_files: OpenFiles, fd: int) -> FileRecords:
        """The records of a file that was just created; they own its descriptor from now on."""
        records = cls(path, fs, open_files, 0)
        records._fd = open_files.opening(records, lambda: fd)
        return records

    @classmethod
    def existing(cls, path: str, fs: FileSystem, open_files: OpenFiles) -> FileRecords:
        """The records of an existing file, which is opened on first use. Raises OSError."""
        return cls(path, fs, open_files, os.stat(path).st_size)

    def fileno(self) -> int:
        """The descriptor, opened if needed. Any later open may close it: use `pin` to keep it."""
        if self._fd < 0:
            self._fd = self._open_files.opening(self, lambda: self._fs.open(self.path))
        elif not self._closed:
            self._open_files.mark_used(self)
        return self._fd

    def append(self, parts: Sequence[Bytes]) -> int:
        """Append whole batches; returns their size in bytes. Raises OSError."""
        if self.cut is not None:
            self._carry_out_cut()
        fd = self._fd
        if fd < 0:
            fd = self.fileno()
        count = self._fs.append(fd, parts, self.size)
        self.size += count
        return count

    def read(self, position: int, size: int) -> bytes:
        """Up to `size` bytes from `position` on; fewer at the end of the file."""
        return os.pread(self.fileno(), max(0, min(size, self.size - position)), position)

    def region(self, position: int, size: int) -> FileRegion:
        """The region of up to `size` bytes from `position` on. Kafka: FileRecords.slice."""
        return FileRegion(self, position, max(0, min(size, self.size - position)))

    def positions(self, start: int = 0, end: int | None = None) -> Iterator[BatchPosition]:
        """Read the batch headers from a batch boundary on; ends without an error at a torn tail, like Kafka's reader.

        Raises: CorruptLogError for a size that no batch has.
        """
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
                base_offset, length, _, magic, last_delta, max_timestamp = _PEEK.unpack_from(chunk, at)
            else:  # a last message of an old format can be shorter than a batch header
                base_offset, length, _, magic = _PEEK_SHORT.unpack_from(chunk, at)
                last_delta, max_timestamp = 0, NO_TIMESTAMP
            if length < MIN_BATCH_LENGTH:
                raise CorruptLogError(
                    f"Found record size {length} smaller than minimum record overhead ({MIN_BATCH_LENGTH}) "
                    f"in file {self.path}."
                )
            size = LOG_OVERHEAD + length
            if position + size > limit:
                return
            if magic < MAGIC_V2:
                last_delta, max_timestamp = 0, _legacy_timestamp(chunk, at, magic)
            yield BatchPosition(base_offset, base_offset + last_delta, position, size, max_timestamp)
            position += size

    def find_offset(self, target: int, start: int = 0) -> BatchPosition | None:
        """The first batch at or after position `start` whose last offset is at least `target`.

        Kafka: FileRecords.searchForOffsetWithSize.
        """
        # Every fetch calls this: the loop over one chunk is faster than `positions`, which is the fallback.
        position = start
        chunk = os.pread(self.fileno(), min(SCAN_BYTES, max(0, self.size - start)), start)
        at, end = 0, len(chunk) - HEADER_PEEK
        while at <= end:
            base_offset, length, _, magic, last_delta, max_timestamp = _PEEK.unpack_from(chunk, at)
            size = LOG_OVERHEAD + length
            if length < MIN_BATCH_LENGTH or position + size > self.size:
                break
            last_offset = base_offset + last_delta if magic >= MAGIC_V2 else base_offset
            if last_offset >= target:
                if magic < MAGIC_V2:
                    max_timestamp = _legacy_timestamp(chunk, at, magic)
                return BatchPosition(base_offset, last_offset, position, size, max_timestamp)
            position += size
            at += size
        for batch in self.positions(position):
            if batch.last_offset >= target:
                return batch
        return None

    def header_at(self, where: BatchPosition) -> AnyBatch:
        """A view of the batch's header only (of the whole batch for old formats)."""
        buffer = memoryview(os.pread(self.fileno(), min(BATCH_OVERHEAD, where.size), where.position))
        return RecordBatch(buffer) if buffer[MAGIC_POSITION] >= MAGIC_V2 else self.batch_at(where)

    def batch_at(self, where: BatchPosition) -> AnyBatch:
        """A view of the whole batch."""
        return view_batch(memoryview(os.pread(self.fileno(), where.size, where.position)))

    def batches(
        self, start: int = 0, sequential_read_bytes: int = SEQUENTIAL_READ_BYTES
    ) -> Iterator[tuple[int, AnyBatch]]:
        """Read the file from a batch boundary on, up to a torn tail: yields positions and batches.

        Reads chunks of `sequential_read_bytes`, or of the size of the next batch if that is larger.

        Raises: CorruptLogError for bytes that are no batch.
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
        """Truncate the file; returns the number of removed bytes."""
        self._check_cut(size)
        self._carry_out_cut()
        cut = self.size - size
        if cut or os.fstat(self.fileno()).st_size != size:
            self._fs.truncate(self.fileno(), size)
            self.size = size
        return cut

    def cut_later(self, size: int) -> int:
        """End at `size` from now on, and leave `cut` to be carried out; returns the number of removed bytes."""
        self._check_cut(size)
        self._carry_out_cut()
        removed = self.size - size
        self.size = size
        self.cut = FileCut(self._fs, size)
        return removed

    def _check_cut(self, size: int) -> None:
        if size > self.size or size < 0:
            raise ValueError(f"cannot truncate {self.path} of {self.size} bytes to {size}")

    def _carry_out_cut(self) -> None:
        if self.cut is not None:
            self.cut.carry_out(self.fileno())
            self.cut = None

    def undo_append(self, size: int) -> None:
        """Undo a partial or complete append: the file ends at `size` again."""
        self._fs.truncate(self.fileno(), size)
        self.size = size

    def trim(self) -> None:
        """Release the preallocated space after the last batch."""
        self._carry_out_cut()
        if os.fstat(self.fileno()).st_size > self.size:
            self._fs.truncate(self.fileno(), self.size)

    def rename_to(self, path: str) -> None:
        self._fs.rename(self.path, path)
        self.path = path

    def duplicate_fd(self) -> int:
        """A duplicate descriptor that the caller owns, to sync the file in a worker thread."""
        fd = self.pin()
        try:
            return self._open_files.retry(lambda: os.dup(fd))
        finally:
            self.unpin()

    def pin(self) -> int:
        """Open the file and keep it open until the matching `unpin`."""
        fd = self.fileno()
        self._pins += 1
        return fd

    def pin_for_client(self) -> int:
        """Like `pin`, but without using a reserved descriptor: a client may keep the file open for long.

        Raises: OSError EMFILE.
        """
        if self._fd >= self._open_files.first_reserved and not (self._pins or self._closed):
            self._open_files.closed(self)  # the log itself opened it
            self._close_fd()
        if self._fd < 0:
            self._fd = self._open_files.opening_for_client(self, lambda: self._fs.open(self.path))
        elif not self._closed:
            self._open_files.mark_used(self)
        self._pins += 1
        return self._fd

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
        """Close the descriptor; a region that is being sent keeps it open until its release."""
        self._open_files.closed(self)
        self._closed = True
        if not self._pins:
            self._close_fd()

    def _close_fd(self) -> None:
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)


def _legacy_timestamp(chunk: bytes, at: int, magic: int) -> int:
    """The timestamp of the message of an old format that begins at `at`. Format 0 has none."""
    if magic == MAGIC_V0:
        return NO_TIMESTAMP
    (timestamp,) = _LEGACY_TIMESTAMP.unpack_from(chunk, at + LEGACY_TIMESTAMP_POSITION)
    return int(timestamp)


class FileRegion:
    """A byte range of a segment file, to be sent or read. Implements `protocol.schema.RecordsRegion`."""

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
        """Copy the bytes, for transports without sendfile. Fewer if the file was truncated meanwhile."""
        return self.records.read(self.position, self.size_in_bytes)

    def retain(self) -> None:
        """Keep the descriptor open until `release`. Raises: OSError EMFILE."""
        self.records.pin_for_client()
        self._pinned += 1

    def hold(self) -> None:
        """Like `retain`, for a read of the broker itself: it may use a reserved descriptor. Raises: OSError."""
        self.records.pin()
        self._pinned += 1

    def release(self) -> None:
        if self._pinned:
            self._pinned -= 1
            self.records.unpin()
