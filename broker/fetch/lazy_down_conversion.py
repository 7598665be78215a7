"""Converts records for an old consumer piece by piece, while they are sent.

An answer begins with its size, which is unknown before the conversion. So, as in Apache Kafka, the size is that of the
stored region, or of its first batch after conversion if that is larger. The first batch is converted before the answer
begins: its conversion may fail, and the consumer must get it whole. The others follow in pieces of at most
`PIECE_BYTES`, each when the one before was sent. Converted records beyond the size are cut off. Missing bytes are
filled with the beginning of a message that never ends (`overflow_batch`); so are those of a piece that cannot be
converted. The consumer fetches again from there, and gets the error then.

Apache Kafka sends the batch behind leading transaction markers twice; here it is sent once.

Invariants: at most one piece of a partition is in memory, beside its converted first batch; bytes that are not in the
page cache are read in the I/O pool; the descriptor is kept from a successful `convert_first` until `release`.

Kafka: LazyDownConversionRecords, LazyDownConversionRecordsSend.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.broker.fetch.down_conversion import Piece
from odradek.broker.machine.hot_reads import read_hot
from odradek.broker.network.responses.sliced_records import SlicedRecords
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch import size_of_next_batch, view_batch
from odradek.protocol.records.convert import overflow_batch
from odradek.protocol.records.layout import LOG_OVERHEAD
from odradek.storage.segment.file_records import FileRegion

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from odradek.broker.fetch.down_conversion import Converted, DownConverter
    from odradek.broker.network.requests.large_requests import ConnectionWork
    from odradek.storage.disk.ports import IoPool

PIECE_BYTES: Final = 128 * 1024
"""Stored bytes; a larger batch is a piece of its own."""

FIRST_READ_BYTES: Final = 4 * 1024
"""Read of the first batch, whose size is not known yet."""

STEPS_A_TURN: Final = 100
"""After so many omitted batches, or first batches of partitions, the event loop gets a turn."""

Wait: TypeAlias = "Callable[[Callable[[], None]], None]"
"""A function that calls its argument when the wait is over."""
Steps: TypeAlias = "Generator[Wait, None, None]"


class LazyDownConversionRecords(SlicedRecords):
    """Records of one partition. `size_in_bytes` is known when `convert_first` has ended without an error."""

    __slots__ = (
        "_converter",
        "_count",
        "_end",
        "_first",
        "_first_offset",
        "_io_pool",
        "_is_cut_short",
        "_magic",
        "_position",
        "_region",
        "_skipped",
        "_work",
    )

    def __init__(
        self,
        region: FileRegion,
        magic: int,
        first_offset: int,
        converter: DownConverter,
        io_pool: IoPool,
        count: Callable[[int, int, int], None] | None = None,
        work: ConnectionWork | None = None,
    ) -> None:
        """`count` is called with a number of converted records, and the time (ns) and the bytes of memory that they
        took. `work`: of the connection, which a conversion may outlive.
        """
        self._region = region
        self._magic = magic
        self._first_offset = first_offset
        self._converter = converter
        self._io_pool = io_pool
        self._count = count
        self._work = work
        self._position = region.position
        self._end = region.position + region.size_in_bytes
        self._first: bytes | None = None
        self._is_cut_short = False
        self._skipped = 0
        self.size_in_bytes = self.remaining = 0

    def retain(self) -> None:
        self._region.retain()

    def release(self) -> None:
        self._region.release()

    # Before the answer begins

    def convert_first(self) -> Generator[Wait, None, ErrorCode]:
        """Retain the region, and convert the first batch whose conversion is not empty; an error code, or NONE.

        After an error the region is not retained.
        """
        try:
            self._region.retain()
        except OSError:  # EMFILE
            return ErrorCode.KAFKA_STORAGE_ERROR
        error = yield from self._convert_first()
        if error != ErrorCode.NONE:
            self._region.release()
        return error

    def _convert_first(self) -> Generator[Wait, None, ErrorCode]:
        has_batches = False
        try:
            while not self._first and (source := (yield from self._next_source(1))):
                has_batches = True
                if view_batch(memoryview(source)).is_control:
                    yield from self._skip()
                    continue
                converted = yield from self._convert(source)
                if isinstance(converted, ErrorCode):
                    return converted
                self._first = converted
        except KafkaError as error:
            return error.code
        except OSError:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if self._first:
            self.size_in_bytes = max(self._region.size_in_bytes, len(self._first))
        elif has_batches:
            self.size_in_bytes = LOG_OVERHEAD
        self.remaining = self.size_in_bytes
        return ErrorCode.NONE

    # While it is sent

    def next_slice(self, done: Callable[[bytes | OSError], None]) -> None:
        run(self._slice(done))

    def _slice(self, done: Callable[[bytes | OSError], None]) -> Steps:
        data, self._first = self._first, None
        try:
            while not data:
                data = yield from self._next_converted()
        except OSError as error:
            done(error)
            return
        data = data[: self.remaining]
        self.remaining -= len(data)
        done(data)

    def _next_converted(self) -> Generator[Wait, None, bytes]:
        source = b""
        if not self._is_cut_short:
            try:
                source = yield from self._next_source(PIECE_BYTES)
            except KafkaError:
                self._is_cut_short = True
        if source:
            converted = yield from self._convert(source)
            if not isinstance(converted, ErrorCode):
                if not converted:
                    yield from self._skip()
                return converted
            self._is_cut_short = True
        return overflow_batch(self.remaining, PIECE_BYTES)

    # Shared

    def _next_source(self, max_bytes: int) -> Generator[Wait, None, bytes]:
        """One batch, or several of together at most `max_bytes`; empty at the end.

        Raises: KafkaError, OSError.
        """
        left = self._end - self._position
        data = yield from self._read(min(left, max(max_bytes, FIRST_READ_BYTES)))
        size = size_of_next_batch(memoryview(data))
        if size is None or size > left:
            return b""
        if size > len(data):
            data = yield from self._read(size)
            if size > len(data):
                return b""  # the log was truncated meanwhile
        end = _end_of_whole_batches(data, size, max_bytes)
        self._position += end
        return data[:end]

    def _read(self, size: int) -> Generator[Wait, None, bytes]:
        region = FileRegion(self._region.records, self._position, size)
        data = read_hot(region) if size else b""
        if data is not None:
            return data
        results: list[bytes | OSError] = []

        def begin(end: Callable[[], None]) -> None:
            region.retain()
            fd, position = region.fileno(), region.position

            def done(result: bytes | OSError) -> None:
                region.release()
                results.append(result)
                end()

            self._io_pool.submit(lambda: os.pread(fd, size, position), done)

        yield begin
        if isinstance(results[0], OSError):
            raise results[0]
        return results[0]

    def _convert(self, source: bytes) -> Generator[Wait, None, bytes | ErrorCode]:
        results: list[tuple[Converted, int]] = []

        def begin(end: Callable[[], None]) -> None:
            def done(result: Converted, conversion_ns: int) -> None:
                if self._work is not None:
                    self._work.end()
                results.append((result, conversion_ns))
                end()

            if self._work is not None:
                self._work.begin()
            self._converter.convert(Piece(source, self._magic, self._first_offset), done)

        yield begin
        ((converted, conversion_ns),) = results
        if isinstance(converted, ErrorCode):
            return converted
        if self._count is not None and converted.converted:
            self._count(converted.converted, conversion_ns, converted.temporary_bytes)
        return converted.records

    def _skip(self) -> Steps:
        """Count an omitted batch; the event loop gets a turn after `STEPS_A_TURN`."""
        self._skipped += 1
        if self._skipped % STEPS_A_TURN == 0:
            yield a_turn(self._io_pool)


def _end_of_whole_batches(data: bytes, end: int, max_bytes: int) -> int:
    """The end of the last whole batch within `max_bytes`, from `end` on. The next read reports an invalid batch."""
    view, limit = memoryview(data), min(max_bytes, len(data))
    while end < limit:
        try:
            size = size_of_next_batch(view[end:])
        except KafkaError:
            break
        if size is None or end + size > limit:
            break
        end += size
    return end


def convert_firsts(
    records: Sequence[LazyDownConversionRecords], io_pool: IoPool, done: Callable[[Sequence[ErrorCode]], None]
) -> None:
    """Convert the first batch of each, one after the other; call `done` with their error codes."""

    def steps() -> Steps:
        errors = []
        for count, each in enumerate(records, 1):
            errors.append((yield from each.convert_first()))
            if each.size_in_bytes > FIRST_READ_BYTES or count % STEPS_A_TURN == 0:
                yield a_turn(io_pool)
        done(errors)

    run(steps())


def a_turn(io_pool: IoPool) -> Wait:
    """A wait that gives the event loop a turn."""
    return lambda end: io_pool.submit(_nothing, lambda _: end())


def _nothing() -> None:
    """The work of a wait that only gives the event loop a turn."""


def run(steps: Steps) -> None:
    """Take the steps. After a wait that is over at once the next step follows without recursion."""
    for wait in steps:
        if not _is_over_at_once(wait, steps):
            return


def _is_over_at_once(wait: Wait, steps: Steps) -> bool:
    is_over, is_now = False, True

    def end() -> None:
        nonlocal is_over
        is_over = True
        if not is_now:
            run(steps)

    wait(end)
    is_now = False
    return is_over
