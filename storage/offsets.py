"""Values for positions in a log: offsets, timestamps and leader epochs.

Kafka: LogOffsetMetadata, TimestampOffset, FileRecords.TimestampAndOffset, EpochEntry,
OffsetForLeaderEpochResponseData.EpochEndOffset.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

from odradek.protocol.records.layout import NO_PARTITION_LEADER_EPOCH

UNKNOWN_OFFSET: Final = -1
UNKNOWN_POSITION: Final = -1


class SpecialTimestamp(IntEnum):
    """The negative timestamps of ListOffsets. Kafka: ListOffsetsRequest."""

    LATEST = -1
    EARLIEST = -2
    MAX = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5


LATEST: Final = int(SpecialTimestamp.LATEST)
"""For requests that name thousands of partitions: to compare a plain int takes less time than a member of an enum."""


class LogOffsetMetadata(NamedTuple):
    """An offset with its segment and file position, where known: a fetch counts bytes from them without reading."""

    message_offset: int
    segment_base_offset: int = UNKNOWN_OFFSET
    relative_position: int = UNKNOWN_POSITION

    def on_older_segment(self, that: LogOffsetMetadata) -> bool:
        return 0 <= self.segment_base_offset < that.segment_base_offset

    def bytes_until(self, end: LogOffsetMetadata) -> int | None:
        """Bytes from here to `end`, a later offset; None if that is on another segment, 0 where a position is unknown.

        Kafka: LogOffsetMetadata.positionDiff.
        """
        base = self.segment_base_offset
        if base == end.segment_base_offset:
            return end.relative_position - self.relative_position
        return 0 if base < 0 or end.segment_base_offset < 0 else None


class TimestampOffset(NamedTuple):
    """An entry of a time index: a timestamp and the last offset of the batch that holds it."""

    timestamp: int
    offset: int


class TimestampAndOffset(NamedTuple):
    """The record that a lookup by time found."""

    timestamp: int
    offset: int
    leader_epoch: int = NO_PARTITION_LEADER_EPOCH


class EpochEntry(NamedTuple):
    """A leader epoch and the offset of its first record."""

    epoch: int
    start_offset: int


class EpochEndOffset(NamedTuple):
    """The result of OffsetForLeaderEpoch; (-1, -1) when undefined."""

    leader_epoch: int
    end_offset: int
