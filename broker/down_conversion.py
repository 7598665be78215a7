"""What an old consumer fetches is converted to magic 0 or 1: a little of it on the loop, all else in a worker process.

Apache converts while it sends, in pieces of 128 KB, on a network thread, and promises the size of what is stored before
it knows the size of what comes of it. Here no more than such a piece of a partition is converted for one answer, its
first batch always; the consumer asks for the rest.

What is small is told from the headers: a few thousand records take some milliseconds, and compressed data may become a
thousand times as much.

Invariants: `done` gets a result for each piece, in order; at most `WORKERS` conversions compute at a time, the others
wait their turn.

Answers to LazyDownConversionRecords and KafkaApis.maybeConvertFetchedData.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch import batches, size_of_next_batch
from odradek.protocol.records.convert import down_convert
from odradek.storage.ports import WorkerError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from odradek.storage.ports import WorkerPool

PIECE_BYTES: Final = 128 * 1024
"""Of one partition in one answer, as it is stored; a larger first batch is converted as a whole."""

INLINE_RECORDS_MAX: Final = 1_000
"""Converted on the loop: about 4 ms."""

INLINE_COMPRESSED_BYTES_MAX: Final = 4 * 1024
"""Opened on the loop: at most 4 MB come of it."""

WORKERS: Final = 2


class Piece(NamedTuple):
    """Records of one partition."""

    records: bytes
    magic: int
    first_offset: int
    """Records before it are left out, where they stand for themselves."""


Converted: TypeAlias = "bytes | ErrorCode"
Done: TypeAlias = "Callable[[Sequence[Converted]], None]"


def piece_of(records: bytes, magic: int, first_offset: int) -> Piece:
    """The beginning of what a reader found: `PIECE_BYTES`, or one whole batch.

    Raises: CorruptRecordError when there is no batch.
    """
    if len(records) > PIECE_BYTES:
        records = records[: max(PIECE_BYTES, size_of_next_batch(memoryview(records)) or 0)]
    return Piece(records, magic, first_offset)


def convert_pieces(pieces: Sequence[Piece], report: Callable[[object], None]) -> list[Converted]:
    """The work of a worker process."""
    return [_convert(piece) for piece in pieces]


def _convert(piece: Piece) -> Converted:
    try:
        return down_convert(
            memoryview(piece.records),
            magic=piece.magic,
            first_offset=piece.first_offset,
            max_source_bytes=PIECE_BYTES,
        )
    except KafkaError as error:
        return error.code


def is_small(pieces: Sequence[Piece]) -> bool:
    """Whether the loop may convert this itself."""
    records = compressed = 0
    for piece in pieces:
        try:
            for batch in batches(memoryview(piece.records)):
                records += batch.record_count or 1  # a message of an old format does not tell
                compressed += batch.size_in_bytes if batch.compression_type else 0
        except KafkaError:
            return True  # refused at its header
    return records <= INLINE_RECORDS_MAX and compressed <= INLINE_COMPRESSED_BYTES_MAX


class DownConverter:
    """The conversions of one broker."""

    __slots__ = ("_running", "_waiting", "_workers")

    def __init__(self, workers: WorkerPool) -> None:
        self._workers = workers
        self._running = 0
        self._waiting: deque[tuple[list[Piece], Done]] = deque()

    def convert(self, pieces: list[Piece], done: Done) -> None:
        """Convert, now or later, then `done(results)`."""
        if is_small(pieces):
            done([_convert(piece) for piece in pieces])
            return
        self._waiting.append((pieces, done))
        self._start_some()

    def _start_some(self) -> None:
        while self._waiting and self._running < WORKERS:
            self._start(*self._waiting.popleft())

    def _start(self, pieces: list[Piece], done: Done) -> None:
        self._running += 1

        def converted(result: list[Converted] | OSError | WorkerError) -> None:
            self._running -= 1
            self._start_some()
            done(result if isinstance(result, list) else [ErrorCode.UNKNOWN_SERVER_ERROR] * len(pieces))

        self._workers.submit(convert_pieces, pieces, converted)
