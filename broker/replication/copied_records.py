"""Appends records that were copied from another log, in slices; the batches keep their offsets.

The event loop gets a turn between two slices: a megabyte of small batches takes long to append.

Kafka: Partition.appendRecordsToFollowerOrFutureReplica.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.protocol.errors import ErrorCode
from odradek.protocol.records.layout import HEADER_SIZE_UP_TO_MAGIC, LOG_OVERHEAD, SIZE_AND_MAGIC
from odradek.storage.append_info import UnexpectedAppendOffsetError

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.storage.append_info import LogAppendInfo
    from odradek.storage.log.unified_log import UnifiedLog

SLICE_BYTES: Final = 256 * 1024
SLICE_BATCHES: Final = 256
"""Batches that are appended before the event loop gets a turn: about 3 ms of small batches."""

PASSING_ERRORS: Final = frozenset({ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD})
"""The next copy of the records may be intact. Any other error ends the copying."""


def slices(records: memoryview, max_bytes: int) -> list[memoryview]:
    """Slices of whole batches: at most `max_bytes` and SLICE_BATCHES each, or one longer batch. An incomplete batch at
    the end is omitted.
    """
    found: list[memoryview] = []
    start = position = count = 0
    while len(records) - position >= HEADER_SIZE_UP_TO_MAGIC:
        following = position + LOG_OVERHEAD + SIZE_AND_MAGIC.unpack_from(records, position)[0]
        if following > len(records) or following <= position:
            break
        if count and (following - start > max_bytes or count == SLICE_BATCHES):
            found.append(records[start:position])
            start, count = position, 0
        position, count = following, count + 1
    if count:
        found.append(records[start:position])
    return found


def append_copied(log: UnifiedLog, records: memoryview, begin_at: Callable[[int], None]) -> LogAppendInfo:
    """Append to the copy `log`. `begin_at` empties it and sets its first offset.

    Raises: KafkaError.
    """
    try:
        return log.append_as_follower(records)
    except UnexpectedAppendOffsetError as error:
        end = log.log_end_offset
        if not (end == log.log_start_offset and error.first_offset < end <= error.last_offset):
            raise
        # The log start of the source is inside its first batch, which is copied whole.
        begin_at(error.first_offset)
        return log.append_as_follower(records)
