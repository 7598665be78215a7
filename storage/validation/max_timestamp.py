"""The max timestamp of a batch, which retention, rolling and lookups by time use for all of its records.

Apache Kafka decodes the records of every batch to compute it. That would double the work of a produce here, so that the
header is trusted where it does no harm: near the present, where a wrong one moves retention and lookups by a minute at
most. Any other value is computed from the records: some clients do not set the field (0, or -1).

Invariants: a batch whose header differs from the present by more than a minute gets the max timestamp of its records;
with more than `RECORDS_WALKED_MAX` records, at least that of the first ones. The time this takes is bounded.

Kafka: LogValidator.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.protocol.records.errors import DecompressedSizeError
from odradek.protocol.records.timestamps import largest_timestamp

if TYPE_CHECKING:
    from odradek.protocol.records.batch import RecordBatch

TRUSTED_DISTANCE_MS: Final = 60_000
"""The distance from the present in which a header is trusted: more than usual clock differences and queueing times."""

RECORDS_WALKED_MAX: Final = 100_000
"""The number of records that are decoded: about 25 ms."""

OPENED_BYTES_MAX: Final = 8 * 1024 * 1024
"""The number of bytes that are decompressed: about 16 ms with gzip, the slowest codec."""


def max_timestamp_of(batch: RecordBatch) -> int:
    """The largest timestamp of the records. If not all are decoded, at least the one in the header.

    Raises: InvalidRecordError when the records cannot be decoded, or end early.
    """
    count = batch.record_count
    try:
        data = batch.record_bytes(OPENED_BYTES_MAX)
    except DecompressedSizeError:
        return max(batch.max_timestamp, batch.base_timestamp)
    largest = largest_timestamp(data, min(count, RECORDS_WALKED_MAX), batch.base_timestamp)
    return largest if count <= RECORDS_WALKED_MAX else max(largest, batch.max_timestamp)
