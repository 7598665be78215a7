"""Lookup of offsets by timestamp, for ListOffsets.

    -1 latest          the reader's limit
    -2 earliest        the log start offset; -4 earliest local is the same without tiered storage
    -3 max timestamp   the record with the largest timestamp, the first of them
    -5 latest tiered   offset -1: there is no tiered storage
    >= 0               the first record with that timestamp or a later one

The max timestamp of a batch header may differ from its records (see `max_timestamp`); the result is always the
timestamp of a record.

Kafka: UnifiedLog.fetchOffsetByTimestamp.
"""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.metadata_version import MetadataVersion
from odradek.protocol.records.errors import CorruptRecordError
from odradek.protocol.records.layout import MAGIC_V0, MAGIC_V1, NO_PARTITION_LEADER_EPOCH, NO_TIMESTAMP
from odradek.storage.offsets import SpecialTimestamp, TimestampAndOffset

if TYPE_CHECKING:
    from odradek.storage.log.log_state import LogState
    from odradek.storage.segment.log_segment import LogSegment
    from odradek.storage.segment.log_segments import LogSegments


def lookup_by_timestamp(log: LogState, timestamp: int, limit: int) -> TimestampAndOffset | None:
    """The record or offset found, restricted to offsets below `limit`; None if there is none.

    Raises: KafkaError UNSUPPORTED_FOR_MESSAGE_FORMAT for a time lookup in message format v0, which has no timestamps;
    UNSUPPORTED_VERSION for an unknown negative timestamp; the errors of `LogState.disk`.
    """
    if log.log_dir.failure is not None:
        log.raise_offline()
    try:
        return _lookup(log, timestamp, limit)
    except (CorruptRecordError, OSError) as error:
        log.raise_for("fetching offset by timestamp", error)


def _lookup(log: LogState, timestamp: int, limit: int) -> TimestampAndOffset | None:
    version = log.local_log.config.message_format_version
    if version.record_version == MAGIC_V0 and timestamp not in (SpecialTimestamp.LATEST, SpecialTimestamp.EARLIEST):
        raise KafkaError(
            ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
            "Cannot search offsets based on timestamp because message format version for partition "
            f"{log.topic_partition} is {version} which is earlier than the minimum required version "
            f"{MetadataVersion.first_of_record_version(MAGIC_V1)}",
        )
    if timestamp >= 0:
        found = _first_record_since(log, timestamp)
        return None if found is None or found.offset >= limit else found
    match timestamp:
        case SpecialTimestamp.LATEST:
            return TimestampAndOffset(NO_TIMESTAMP, limit, log.leader_epochs.latest_epoch)
        case SpecialTimestamp.EARLIEST | SpecialTimestamp.EARLIEST_LOCAL:
            earliest = log.leader_epochs.earliest_entry
            epoch = NO_PARTITION_LEADER_EPOCH
            if earliest is not None and earliest.start_offset <= log.watermarks.log_start_offset:
                epoch = earliest.epoch
            return TimestampAndOffset(NO_TIMESTAMP, log.watermarks.log_start_offset, epoch)
        case SpecialTimestamp.LATEST_TIERED:
            return TimestampAndOffset(NO_TIMESTAMP, -1, NO_PARTITION_LEADER_EPOCH)
        case SpecialTimestamp.MAX:
            found = _record_of_max_timestamp(log)
        case _:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"Unknown timestamp {timestamp} in a lookup of offsets")
    return None if found is None or found.offset >= limit else found


def segment_of_time(segments: LogSegments, timestamp: int) -> LogSegment | None:
    """The segment that a lookup reads first; None if it reads none."""
    if timestamp == SpecialTimestamp.MAX:
        return max(segments, key=lambda segment: segment.largest.timestamp)
    if timestamp < 0:
        return None
    return segments.first_from_time(timestamp)


def _record_of_max_timestamp(log: LogState) -> TimestampAndOffset | None:
    """The first record of all when none has a timestamp. As in Apache Kafka, none in the message format v0, and none
    when compaction has emptied the batch with the largest timestamp.
    """
    segment = segment_of_time(log.segments, SpecialTimestamp.MAX)
    assert segment is not None, "every log has a segment"
    timestamp, offset = segment.largest
    for where in segment.records.positions(segment.offset_index.lookup(offset).position):
        if where.max_timestamp != timestamp:
            continue
        batch = segment.records.batch_at(where)
        if batch.magic == MAGIC_V0:
            return None
        # The first of several equal ones.
        latest = max(batch.records(), key=lambda record: record.timestamp, default=None)
        if latest is None:
            return None
        return TimestampAndOffset(latest.timestamp, latest.offset, batch.partition_leader_epoch)
    return None


def _first_record_since(log: LogState, timestamp: int) -> TimestampAndOffset | None:
    segments, start_offset = log.segments, log.watermarks.log_start_offset
    segment, others = segments.first_from_time(timestamp), None
    while segment is not None:
        found = segment.find_by_timestamp(timestamp, start_offset)
        # A header with a larger max timestamp than its records must not end the search. A segment without any timestamp
        # (selected by the modification time of its file) ends it, as in Apache.
        if found is not None or segment.largest.timestamp < 0:
            return found
        others = others or islice(segments.from_time(timestamp), 1, None)
        segment = next(others, None)
    return None
