"""Decides which validations are too long for the event loop. Worker processes do these (`validation_job`).

Measured: building and compressing a record anew takes 3 to 5 µs, gzip 30 ns for each byte, a walk over the records 1 µs
for each. Compressed bytes may become a thousand times as many. With these limits no client causes a pause of 50 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.protocol.records.layout import LOG_OVERHEAD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.protocol.records.batch import AnyBatch, RecordBatch

REBUILT_RECORDS_MAX: Final = 1_000
"""Decoded to values, and built anew, on the loop: 5 ms."""

REBUILT_BYTES_MAX: Final = 64 * 1024
"""Compressed on the loop: 2 ms with gzip."""

REBUILT_COMPRESSED_BYTES_MAX: Final = 4 * 1024
"""Decompressed and compressed anew on the loop: at most 4 MB after decompression."""

WALKED_RECORDS_MAX: Final = 10_000
"""Walked over on the loop: 10 ms."""

WALKED_COMPRESSED_BYTES_MAX: Final = 16 * 1024
"""Decompressed on the loop for a walk: at most 16 MB after decompression."""


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
