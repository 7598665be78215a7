"""What one compaction of a log is given, and what it leaves: the words between the cleaner and its worker process.

The worker reads closed segments, which nobody changes, and writes `.cleaned` files beside them. It renames and removes
nothing: putting its output in place is done by the owner of the log, on the event loop.

Kafka: LogToClean and CleanerStats.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.protocol.topic_partition import TopicPartition
    from odradek.storage.config.log_config import LogConfig


class LastRecord(NamedTuple):
    """Which batch of a producer must stay, so that its sequence numbers are not forgotten."""

    last_data_offset: int | None
    """None: the producer has only written a marker, whose batch of `producer_epoch` stays."""
    producer_epoch: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanJob:
    """One compaction. Everything here can be pickled; offsets are those of the log, times are milliseconds."""

    directory: str
    topic_partition: TopicPartition
    config: LogConfig
    base_offsets: tuple[int, ...]
    """The segments from the log's first to the last below `first_uncleanable_offset`, none of them active."""
    first_dirty_offset: int
    first_uncleanable_offset: int
    """Where the first segment begins that must stay as it is."""
    now_ms: int
    last_records: Mapping[int, LastRecord]
    """By producer id."""
    offset_map_bytes: int
    """log.cleaner.dedupe.buffer.size for this cleaner: 24 bytes a key."""
    offset_map_load_factor: float
    io_buffer_bytes: int
    io_max_bytes_per_second: float
    max_message_bytes: int
    """The broker's message.max.bytes, or the topic's if larger: an older batch may be larger still, and is read."""


class CleanedGroup(NamedTuple):
    """Some segments and the one that takes their place, written as `.cleaned` and fsynced, its mtime the last one's."""

    source_base_offsets: tuple[int, ...]
    base_offset: int
    """Of the new segment: the first source's."""


class SplitNeeded(NamedTuple):
    """A segment whose offsets do not fit into an index (KAFKA-6264): it is to be split before the log is cleaned."""

    base_offset: int


@dataclass(slots=True)
class CleanStats:
    """What a compaction has read and written, for the log and the metrics."""

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


@dataclass(slots=True, kw_only=True)
class CleanResult:
    """What came of it."""

    next_dirty_offset: int
    """Everything below has been compacted: what the cleaner checkpoint will say."""
    groups: list[CleanedGroup] = field(default_factory=list)
    split: SplitNeeded | None = None
    """Set when cleaning stopped at such a segment; then there are no groups."""
    stats: CleanStats = field(default_factory=CleanStats)
