"""Decides which validations are too long for the event loop. Worker processes do these (`validation_job`).

Measured: building and compressing a record anew takes up to 4 µs, and 1.4 µs for each of its headers; gzip 30 ns for a
byte; a walk 0.5 µs for a record and 0.13 µs for a header; a message in a wrapper of an old format 7 µs. The header of a
batch does not tell the number of the records' headers, or of the messages in a wrapper, and compressed bytes may become
a thousand times as many. So the loop opens and counts no more than the limits say. With these limits no client causes a
pause of 50 ms.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.protocol.records.batch import RecordBatch
from odradek.protocol.records.errors import CorruptRecordError, DecompressedSizeError
from odradek.protocol.records.layout import LOG_OVERHEAD
from odradek.protocol.records.record_fields import LongHeadersError
from odradek.protocol.records.record_walks import summarize

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from odradek.protocol.records.batch import AnyBatch
    from odradek.protocol.records.record_walks import RecordsSummary

REBUILT_RECORDS_MAX: Final = 1_000
"""Decoded to values, and built anew, on the loop: 4 ms."""

REBUILT_BYTES_MAX: Final = 64 * 1024
"""Compressed on the loop: 2 ms with gzip."""

REBUILT_COMPRESSED_BYTES_MAX: Final = 4 * 1024

DECODED_HEADERS_MAX: Final = 10_000
"""Of the records of one batch, decoded to values on the loop and built anew: 14 ms."""

DECODED_BYTES_MAX: Final = 256 * 1024
"""Of decompressed records that are decoded to values on the loop."""

DECODED_WRAPPER_BYTES_MAX: Final = 64 * 1024
"""Of the messages in wrappers of an old format, which have at least 26 bytes: 18 ms."""

WALKED_RECORDS_MAX: Final = 10_000
"""Walked over on the loop: 5 ms."""

WALKED_HEADERS_MAX: Final = 50_000
"""Walked over on the loop: 7 ms."""

WALKED_COMPRESSED_BYTES_MAX: Final = 16 * 1024
WALKED_DECOMPRESSED_BYTES_MAX: Final = 4 * 1024 * 1024
"""Decompressed on the loop for a walk: 10 ms with gzip."""


class LongValidationError(Exception):
    """A validation that the event loop may not do itself. Not an answer for clients."""


def check_separation(records: memoryview) -> None:
    """Raise LongValidationError if even to separate the batches would hold the loop up: old clients send several, or
    single messages.
    """
    size = len(records)
    if size > REBUILT_BYTES_MAX and LOG_OVERHEAD + int.from_bytes(records[8:LOG_OVERHEAD], "big") < size:
        raise LongValidationError


def walk(batch: RecordBatch, max_decompressed_bytes: int) -> RecordsSummary:
    """The summary of the records.

    Raises: InvalidRecordError; LongValidationError if the walk over them would hold the loop up.
    """
    if batch.record_count > WALKED_RECORDS_MAX or (
        batch.compression_type and batch.size_in_bytes > WALKED_COMPRESSED_BYTES_MAX
    ):
        raise LongValidationError
    try:
        return batch.summary(min(max_decompressed_bytes, WALKED_DECOMPRESSED_BYTES_MAX), WALKED_HEADERS_MAX)
    except (DecompressedSizeError, LongHeadersError):
        raise LongValidationError from None


def check_rebuild(found: Sequence[AnyBatch]) -> None:
    """Raise LongValidationError if to decode or to rebuild all records would hold the loop up."""
    if sum(0 if batch.compression_type else batch.size_in_bytes for batch in found) > REBUILT_BYTES_MAX:
        raise LongValidationError
    check_decoding(found)


def check_decoding(found: Iterable[AnyBatch]) -> None:
    """Raise LongValidationError if to decode all records would hold the loop up.

    Opens what is compressed. Invalid records are left to the one who decodes them.
    """
    records = compressed = 0
    batches = list(found)
    for batch in batches:
        records += batch.record_count or 1  # a message of an old format has no count
        compressed += batch.size_in_bytes if batch.compression_type else 0
    if records > REBUILT_RECORDS_MAX or compressed > REBUILT_COMPRESSED_BYTES_MAX:
        raise LongValidationError
    bytes_left, wrapper_bytes_left = DECODED_BYTES_MAX, DECODED_WRAPPER_BYTES_MAX
    for batch in batches:
        try:
            if isinstance(batch, RecordBatch):
                bytes_left -= _checked_size(batch, bytes_left)
            elif batch.compression_type:
                wrapper_bytes_left -= len(batch.inner_bytes(wrapper_bytes_left))
        except (DecompressedSizeError, LongHeadersError):
            raise LongValidationError from None
        except CorruptRecordError:
            continue


def _checked_size(batch: RecordBatch, max_bytes: int) -> int:
    """How many bytes the compressed records become. Raises: LongHeadersError; CorruptRecordError."""
    data = batch.record_bytes(max_bytes)
    summarize(data, batch.checked_count(), batch.base_timestamp, DECODED_HEADERS_MAX)
    return len(data) if batch.compression_type else 0
