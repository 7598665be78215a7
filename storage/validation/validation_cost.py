"""Decides which validations are too long for the event loop. Worker processes do these (`validation_job`).

Measured: building and compressing a record anew takes 3 to 5 µs, gzip 30 ns for each byte, a walk over the records 1 µs
for each. Compressed bytes may become a thousand times as many. With these limits records of usual shapes cause no pause
of 50 ms; headers, and the messages in one of an old format, are not counted.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.compression import CompressionType, zstd_size_bound
from odradek.protocol.records.errors import DecompressionError
from odradek.protocol.records.layout import LOG_OVERHEAD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.protocol.records.batch import AnyBatch

REBUILT_RECORDS_MAX: Final = 1_000
"""Decoded to values, and built anew, on the loop: 5 ms."""

REBUILT_BYTES_MAX: Final = 64 * 1024
"""Compressed on the loop: 2 ms with gzip."""

REBUILT_COMPRESSED_BYTES_MAX: Final = 4 * 1024
REBUILT_DECOMPRESSED_BYTES_MAX: Final = 4 * 1024 * 1024
"""Decompressed and compressed anew on the loop. Only zstd makes more than the second of the first: four bytes stand for
128 KB of one byte."""

WALKED_RECORDS_MAX: Final = 10_000
"""Walked over on the loop: 10 ms."""

WALKED_COMPRESSED_BYTES_MAX: Final = 16 * 1024
WALKED_DECOMPRESSED_BYTES_MAX: Final = 16 * 1024 * 1024
"""Decompressed on the loop for a walk."""


class LongValidationError(Exception):
    """A validation that the event loop may not do itself. Not an answer for clients."""


def check_separation(records: memoryview) -> None:
    """Raise LongValidationError if even to separate the batches would hold the loop up: old clients send several, or
    single messages.
    """
    size = len(records)
    if size > REBUILT_BYTES_MAX and LOG_OVERHEAD + int.from_bytes(records[8:LOG_OVERHEAD], "big") < size:
        raise LongValidationError


def check_walk(batch: RecordBatch) -> None:
    """Raise LongValidationError if a walk over the records would hold the loop up."""
    if batch.record_count > WALKED_RECORDS_MAX or (
        batch.compression_type and batch.size_in_bytes > WALKED_COMPRESSED_BYTES_MAX
    ):
        raise LongValidationError
    if batch.compression_type == CompressionType.ZSTD:
        _check_zstd(batch, WALKED_DECOMPRESSED_BYTES_MAX)


def check_rebuild(found: Sequence[AnyBatch]) -> None:
    """Raise LongValidationError if to decode or to rebuild all records would hold the loop up."""
    records = plain = compressed = 0
    for batch in found:
        records += batch.record_count or 1  # a message of an old format has no count
        if batch.compression_type:
            compressed += batch.size_in_bytes
        else:
            plain += batch.size_in_bytes
    if records > REBUILT_RECORDS_MAX or plain > REBUILT_BYTES_MAX or compressed > REBUILT_COMPRESSED_BYTES_MAX:
        raise LongValidationError
    for batch in found:
        if batch.compression_type == CompressionType.ZSTD and isinstance(batch, RecordBatch):
            _check_zstd(batch, REBUILT_DECOMPRESSED_BYTES_MAX)


def _check_zstd(batch: RecordBatch, limit: int) -> None:
    """Raise LongValidationError if the frames may become more. Invalid ones are refused where they are decompressed."""
    with suppress(DecompressionError):
        if zstd_size_bound(batch.payload, limit) > limit:
            raise LongValidationError
