"""Which max timestamp a batch gets: what retention, rolling and lookups by time go by for all of its records.

Apache Kafka walks the records of every batch for it. That would double the work of a produce here, so the header is
believed where it can do no harm: near the present, where a wrong one moves retention and lookups by a minute at most.
Any other, as clients send that do not fill the field in (0, or -1), is worked out from the records.

Invariants: a batch whose header says anything but the last or the next minute gets what its records say, or, of more
than `RECORDS_WALKED_MAX` records, no less than that of the first of them; the time this takes is bounded.

Answers to what LogValidator does about maxTimestamp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.protocol.records.errors import DecompressedSizeError
from odradek.protocol.records.timestamps import largest_timestamp

if TYPE_CHECKING:
    from odradek.protocol.records.batch import RecordBatch

BELIEVED_DISTANCE_MS: Final = 60_000
"""From the present, in either direction: where a producer's clock and its queue usually are."""

RECORDS_WALKED_MAX: Final = 100_000
"""About 25 ms."""

OPENED_BYTES_MAX: Final = 8 * 1024 * 1024
"""Decompressed for this: about 16 ms with gzip, the slowest."""


def is_believable(batch: RecordBatch, now_ms: int) -> bool:
    """Whether the header's max timestamp may stand for the records unread."""
    return batch.base_timestamp <= batch.max_timestamp and (
        -BELIEVED_DISTANCE_MS <= now_ms - batch.max_timestamp <= BELIEVED_DISTANCE_MS
    )


def max_timestamp_of(batch: RecordBatch) -> int:
    """The largest timestamp of the records. Where they are too many to look at, the header has a say.

    Raises: InvalidRecordError when they cannot be opened, or end early.
    """
    count = batch.record_count
    try:
        data = batch.record_bytes(OPENED_BYTES_MAX)
    except DecompressedSizeError:
        return max(batch.max_timestamp, batch.base_timestamp)
    largest = largest_timestamp(data, min(count, RECORDS_WALKED_MAX), batch.base_timestamp)
    return largest if count <= RECORDS_WALKED_MAX else max(largest, batch.max_timestamp)
