"""What the indexes of a segment need of an appended batch, and the offsets that they cannot represent."""

from __future__ import annotations

from typing import Final, NamedTuple

from odradek.protocol.errors import ErrorCode, KafkaError

MAX_RELATIVE_OFFSET: Final = 2**31 - 1


class SegmentOffsetOverflowError(KafkaError):
    """An offset is too far above the segment's base offset to be indexed. Kafka: LogSegmentOffsetOverflowException."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.UNKNOWN_SERVER_ERROR, message)


class AppendedBatch(NamedTuple):
    """The properties of an appended batch that the indexes need."""

    last_offset: int
    max_timestamp: int
    offset_of_max_timestamp: int
    size: int
