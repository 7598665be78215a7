"""Converts records for old consumers to magic 0 or 1: small pieces on the event loop, others in a worker process.

A thousand records take some milliseconds, and compressed data may grow a thousandfold: the limits are those of
`validation_cost`. `lazy_down_conversion` decides which piece is converted when.

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
from odradek.storage.validation.validation_cost import LongValidationError, check_decoding

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.storage.disk.ports import WorkerPool

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
    try:
        check_decoding(batch for batch in batches(memoryview(piece.records)) if batch.magic > piece.magic)
    except LongValidationError:
        return False
    except KafkaError:
        return True  # refused at its header
    return True


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
