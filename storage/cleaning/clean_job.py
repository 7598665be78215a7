"""The job and the result of one compaction: the messages between the cleaner and its worker process.

The worker reads inactive segments, which do not change, and writes `.cleaned` files beside them. It renames and removes
nothing: the cleaner puts the output in place on the event loop.

Kafka: LogToClean, CleanerStats, LastRecord.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.config.log_config import LogConfig


class LastRecord(NamedTuple):
    """The last batch of a producer. It must stay, because it keeps the producer's sequence numbers."""

    last_data_offset: int | None
    """None: the producer only wrote a marker; the marker with `producer_epoch` stays."""
    producer_epoch: int


class CleanJob(NamedTuple):
    """One compaction of a log. Can be pickled. Times are in milliseconds."""

    directory: str
    topic_partition: TopicPartition
    config: LogConfig
    base_offsets: tuple[int, ...]
    """All segments of the log below `first_uncleanable_offset`; none of them is active."""
    first_dirty_offset: int
    first_uncleanable_offset: int
    """The base offset of the first segment that must not be compacted."""
    now_ms: int
    last_records: Mapping[int, LastRecord]
    """By producer id."""
    offset_map_bytes: int
    """The share of log.cleaner.dedupe.buffer.size of this job, at 24 bytes per key."""
    offset_map_load_factor: float
    io_buffer_bytes: int
    io_max_bytes_per_second: float
    max_message_bytes: int
    """The larger of message.max.bytes of broker and topic. Older batches may be larger, and are read too."""


class CleanedGroup(NamedTuple):
    """A group of segments and the one that replaces them. The new one is written as `.cleaned` and fsynced, with the
    modification time of the last source.
    """

    source_base_offsets: tuple[int, ...]
    base_offset: int
    """The base offset of the new segment: that of the first source."""


class SplitNeeded(NamedTuple):
    """A segment whose offsets cannot be indexed (KAFKA-6264): it must be split before the log is compacted."""

    base_offset: int


@dataclass(slots=True)
class CleanStats:
    """The amounts that a compaction read and wrote, for its log line and the metrics."""

    bytes_read: int = 0
    bytes_written: int = 0
    messages_read: int = 0
    messages_written: int = 0
    invalid_messages_read: int = 0
    map_messages_read: int = 0
    map_bytes_read: int = 0
    map_entries: int = 0
    map_utilization: float = 0.0
    elapsed_ms: int = 0
    index_ms: int = 0

    @property
    def io_bytes(self) -> int:
        """What log.cleaner.io.max.bytes.per.second limits: all bytes that were read, in both passes, and written."""
        return self.map_bytes_read + self.bytes_read + self.bytes_written


@dataclass(slots=True, kw_only=True)
class CleanResult:
    """The result of a compaction."""

    next_dirty_offset: int
    """Everything below is compacted: the new value of the cleaner checkpoint."""
    groups: list[CleanedGroup] = field(default_factory=list)
    split: SplitNeeded | None = None
    """Set if the compaction stopped at such a segment; then there are no groups."""
    stats: CleanStats = field(default_factory=CleanStats)
