"""Converts records for old consumers to magic 0 or 1: small pieces on the event loop, others in a worker process.

The batch headers tell whether a piece is small: a thousand records take some milliseconds, and compressed data may grow
a thousandfold. `lazy_down_conversion` decides which piece is converted when.

Invariants: `done` is called once; at most `WORKERS` conversions run at a time, the others wait.

Kafka: RecordsUtil.downConvert, which Apache Kafka's network threads call.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.records.batch import batches
from odradek.protocol.records.convert import DownConverted, down_convert
from odradek.storage.disk.ports import WorkerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.storage.disk.ports import WorkerPool

INLINE_RECORDS_MAX: Final = 1_000
"""Converted on the loop: about 4 ms."""

INLINE_COMPRESSED_BYTES_MAX: Final = 4 * 1024
"""Opened on the loop: at most 4 MB come of it."""

WORKERS: Final = 2


class Piece(NamedTuple):
    """Records of one partition: whole batches."""

    records: bytes
    magic: int
    first_offset: int
    """Uncompressed records before it are left out."""


Converted: TypeAlias = "DownConverted | ErrorCode"
Done: TypeAlias = "Callable[[Converted, int], None]"
"""Gets the records or an error code, and how long the conversion took (ns; in a worker process with the way there)."""


def convert_piece(piece: Piece, report: Callable[[object], None]) -> Converted:
    """The work of a worker process."""
    return _convert(piece)


def _convert(piece: Piece) -> Converted:
    try:
        return down_convert(memoryview(piece.records), magic=piece.magic, first_offset=piece.first_offset)
    except KafkaError as error:
        return error.code


def is_small(piece: Piece) -> bool:
    """Whether the event loop may convert the piece itself."""
    records = compressed = 0
    try:
        for batch in batches(memoryview(piece.records)):
            records += batch.record_count or 1  # a message of an old format has no count
            compressed += batch.size_in_bytes if batch.compression_type else 0
    except KafkaError:
        return True  # refused at its header
    return records <= INLINE_RECORDS_MAX and compressed <= INLINE_COMPRESSED_BYTES_MAX


class DownConverter:
    """The conversions of one broker."""

    __slots__ = ("_now_ns", "_running", "_waiting", "_workers")

    def __init__(self, workers: WorkerPool, now_ns: Callable[[], int]) -> None:
        self._workers = workers
        self._now_ns = now_ns
        self._running = 0
        self._waiting: deque[tuple[Piece, Done]] = deque()

    def convert(self, piece: Piece, done: Done) -> None:
        """Convert, now or later, then call `done`."""
        if is_small(piece):
            began_ns = self._now_ns()
            done(_convert(piece), self._now_ns() - began_ns)
            return
        self._waiting.append((piece, done))
        self._start_some()

    def _start_some(self) -> None:
        while self._waiting and self._running < WORKERS:
            self._start(*self._waiting.popleft())

    def _start(self, piece: Piece, done: Done) -> None:
        self._running += 1
        began_ns = self._now_ns()

        def converted(result: Converted | OSError | WorkerError) -> None:
            self._running -= 1
            self._start_some()
            if isinstance(result, OSError | WorkerError):
                result = ErrorCode.UNKNOWN_SERVER_ERROR
            done(result, self._now_ns() - began_ns)

        self._workers.submit(convert_piece, piece, converted)
