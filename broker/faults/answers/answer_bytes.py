"""An encoded answer that is sent in another way: cut off, slowly, or with changed bytes.

`AlteredAnswer` takes the place of the parts of an answer, `CorruptedRecords` that of the records of a partition. The
sender asks for one slice after the other and waits for each, so the order of answers and the limits on unsent bytes
stay as they are. Records that are a region of a file are read in the I/O pool, one slice at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from odradek.broker.network.responses.response_sender import FileRegion
from odradek.broker.network.responses.sliced_records import SlicedRecords
from odradek.protocol.codec.codec import size_of
from odradek.protocol.records.layout import MAGIC_POSITION, MAGIC_V2

if TYPE_CHECKING:
    from odradek.protocol.codec.codec import Part
    from odradek.storage.disk.ports import IoPool

SLICE_BYTES: Final = 64 * 1024

SLOW_SLICE_MS: Final = 50
"""A slow answer comes in pieces of as many bytes as its rate has in this time."""

CRC_POSITION: Final = 17
"""Of a batch of format 2, from its beginning; the messages of older formats have theirs at `OLD_CRC_POSITION`."""

OLD_CRC_POSITION: Final = 12

Done: TypeAlias = Callable[[bytes | OSError], None]
Later: TypeAlias = Callable[[int, Callable[[], object]], object]
"""Calls a function in some ms."""


class AlteredAnswer(SlicedRecords):
    """The first `end` bytes of the parts of an answer. With `finished`, that is called then and nothing more is sent.

    `bytes_per_second` is the rate, None for as fast as the client reads.
    """

    __slots__ = ("_at", "_end", "_finished", "_index", "_io_pool", "_later", "_parts", "_rate", "_rest", "_sent")

    def __init__(
        self,
        parts: Sequence[Part],
        io_pool: IoPool,
        later: Later,
        *,
        end: int | None = None,
        finished: Callable[[], None] | None = None,
        bytes_per_second: int | None = None,
    ) -> None:
        whole = size_of(parts)
        self._parts = parts
        self._io_pool = io_pool
        self._later = later
        self._end = whole if end is None else min(end, whole)
        self._finished = finished
        self._rate = bytes_per_second
        self._sent = self._index = self._at = 0
        self._rest = b""
        """Bytes of a part made in slices that are more than one slice here."""
        # One byte more than there are keeps the sender asking, so that it asks when all others are written.
        self.size_in_bytes = self.remaining = self._end + (finished is not None)

    def retain(self) -> None:
        """Retain all regions, or none. Raises: OSError (EMFILE)."""
        retained: list[FileRegion | SlicedRecords] = []
        try:
            for region in self._regions():
                region.retain()
                retained.append(region)
        except OSError:
            for region in retained:
                region.release()
            raise

    def release(self) -> None:
        for region in self._regions():
            region.release()

    def next_slice(self, done: Done) -> None:
        if self._sent == self._end:
            assert self._finished is not None, "a whole answer has nothing after its end"
            self._finished()
            return
        size = min(SLICE_BYTES, self._end - self._sent)
        if self._rate is not None:
            size = min(size, max(1, self._rate * SLOW_SLICE_MS // 1000))
        self._read(size, done)

    def _regions(self) -> list[FileRegion | SlicedRecords]:
        return [
            cast("FileRegion | SlicedRecords", part)
            for part in self._parts
            if not isinstance(part, bytes | bytearray | memoryview)
        ]

    def _read(self, size: int, done: Done) -> None:
        if self._rest:
            data, self._rest = self._rest[:size], self._rest[size:]
            self._deliver(data, done)
            return
        part = self._parts[self._index]
        part_size = len(part) if isinstance(part, bytes | bytearray | memoryview) else part.size_in_bytes
        if self._at == part_size:
            self._index, self._at = self._index + 1, 0
            self._read(size, done)
            return
        size = min(size, part_size - self._at)
        if isinstance(part, bytes | bytearray | memoryview):
            data = bytes(part[self._at : self._at + size])
            self._at += size
            self._deliver(data, done)
        elif isinstance(part, SlicedRecords):
            part.next_slice(lambda result: self._made(result, size, done))
        else:
            at, self._at = self._at, self._at + size
            read_region(cast("FileRegion", part), at, size, self._io_pool, lambda found: self._deliver(found, done))

    def _made(self, result: bytes | OSError, size: int, done: Done) -> None:
        if isinstance(result, OSError):
            done(result)
            return
        self._at += len(result)
        self._rest = result[size:]
        self._deliver(result[:size], done)

    def _deliver(self, data: bytes | OSError, done: Done) -> None:
        if isinstance(data, OSError):
            done(data)
            return
        self._sent += len(data)
        self.remaining -= len(data)
        if self._rate is None:
            done(data)
        else:
            self._later(max(1, len(data) * 1000 // self._rate), lambda: done(data))


class CorruptedRecords(SlicedRecords):
    """The records of a partition, whose first batch has a wrong checksum."""

    __slots__ = ("_at", "_io_pool", "_source")

    def __init__(self, source: FileRegion | SlicedRecords, io_pool: IoPool) -> None:
        self._source = source
        self._io_pool = io_pool
        self._at = 0
        self.size_in_bytes = self.remaining = source.size_in_bytes

    def retain(self) -> None:
        """Raises: OSError (EMFILE)."""
        self._source.retain()

    def release(self) -> None:
        self._source.release()

    def next_slice(self, done: Done) -> None:
        def found(data: bytes | OSError) -> None:
            if isinstance(data, OSError):
                done(data)
                return
            is_first, self._at = self._at == 0, self._at + len(data)
            self.remaining -= len(data)
            done(with_wrong_crc(data) if is_first else data)

        if isinstance(self._source, SlicedRecords):
            self._source.next_slice(found)
        else:
            size = min(SLICE_BYTES, self.remaining)
            read_region(self._source, self._at, size, self._io_pool, found)


def with_wrong_crc(records: bytes | bytearray | memoryview) -> bytes:
    """The records with one bit changed in the checksum of the first batch; unchanged if there is no whole header."""
    changed = bytearray(records)
    if len(changed) > CRC_POSITION:
        changed[CRC_POSITION if changed[MAGIC_POSITION] >= MAGIC_V2 else OLD_CRC_POSITION] ^= 1
    return bytes(changed)


def read_region(region: FileRegion, at: int, size: int, io_pool: IoPool, done: Done) -> None:
    """Read `size` bytes of a retained region from its byte `at` on, in the I/O pool."""
    region.retain()
    fd, position = region.fileno(), region.position + at

    def finish(data: bytes | OSError) -> None:
        region.release()
        if not isinstance(data, OSError) and len(data) < size:
            data = OSError("the log was truncated while it was being sent")
        done(data)

    io_pool.submit(lambda: os.pread(fd, size, position), finish)
