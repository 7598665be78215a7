"""Splitting a segment whose offsets are too far apart to be indexed (KAFKA-6264).

Old brokers compacted segments together until an offset lay more than 2^31-1 above the base. The batches are copied, as
they are, into as many segments as are needed, each named by its first batch. They are written as `.cleaned`; taking
the place of the source is the caller's part: at start-up by what also finishes an interrupted compaction, while the
log is in use by `segment_swap`.

The source's aborted transactions go with the batches that hold their markers; Apache forgets them until the segment is
recovered. A torn tail stays at the end, for recovery to find.

Invariants: the source is not touched; the new segments together have as many bytes as the source; they are on the disk
when this returns.

Kafka: LocalLog.splitOverflowedSegment.
"""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.storage import log_files
from odradek.storage.disk.environment import Environment
from odradek.storage.segment.file_records import CorruptLogError
from odradek.storage.segment.log_segment import MAX_RELATIVE_OFFSET, AppendedBatch, LogSegment

if TYPE_CHECKING:
    from collections.abc import Callable

    from odradek.protocol.records.batch import AnyBatch
    from odradek.storage.config.log_config import LogConfig

logger = logging.getLogger(__name__)


class OverflowedSegmentError(Exception):
    """A segment that must be split before its log can be loaded."""

    def __init__(self, base_offset: int) -> None:
        super().__init__(f"Segment {base_offset} has offsets that cannot be indexed")
        self.base_offset = base_offset


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitJob:
    """Which segment is to be split, for a worker process."""

    directory: str
    base_offset: int
    config: LogConfig


def split_in_worker(job: SplitJob, report: Callable[[object], None]) -> list[int]:
    """The work of a worker process: see `split_segment`."""
    return split_segment(job.directory, job.base_offset, job.config, Environment.of_worker())


def can_be_split(segment: LogSegment) -> bool:
    """Whether the segment is sound but for the distance of its offsets: they rise, from the base on."""
    previous = segment.base_offset - 1
    try:
        for where in segment.records.positions():
            if where.base_offset <= previous:
                return False
            previous = where.last_offset
    except CorruptLogError:
        return False
    return previous - segment.base_offset > MAX_RELATIVE_OFFSET


def split_segment(directory: str, base_offset: int, config: LogConfig, environment: Environment) -> list[int]:
    """Write the parts of a segment beside it, as `.cleaned` files; returns their base offsets.

    Raises: OSError, after which no `.cleaned` file is left.
    """
    source = LogSegment.open(directory, base_offset, config, environment)
    logger.info("Splitting overflowed segment %s", source)
    parts: list[LogSegment] = []
    try:
        _copy_batches(source, directory, parts, config, environment)
        _copy_aborted(source, parts)
        for part in parts:
            _finish(part, source, environment)
    except BaseException:
        for part in parts:
            part.discard()
            for path in part.paths:
                environment.fs.unlink(path)
        raise
    finally:
        source.discard()
    return [part.base_offset for part in parts]


def _copy_batches(
    source: LogSegment, directory: str, parts: list[LogSegment], config: LogConfig, environment: Environment
) -> None:
    copied = 0
    for position, batch in source.records.batches():
        if not parts or batch.last_offset - parts[-1].base_offset > MAX_RELATIVE_OFFSET:
            parts.append(_new_part(directory, batch.base_offset, config, environment))
        parts[-1].append_batches([batch.buffer], [_appended(batch)])
        copied = position + len(batch.buffer)
    torn = source.records.read(copied, source.size - copied)
    if torn:
        parts[-1].records.append([torn])


def _new_part(directory: str, base_offset: int, config: LogConfig, environment: Environment) -> LogSegment:
    stem = os.path.join(directory, log_files.offset_name(base_offset, ""))
    for suffix in log_files.SEGMENT_FILE_SUFFIXES:  # of an attempt that was killed
        environment.fs.unlink(stem + suffix + log_files.CLEANED_FILE_SUFFIX)
    return LogSegment.open(
        directory, base_offset, config, environment, create=True, suffix=log_files.CLEANED_FILE_SUFFIX
    )


def _appended(batch: AnyBatch) -> AppendedBatch:
    return AppendedBatch(batch.last_offset, batch.max_timestamp, batch.last_offset, len(batch.buffer))


def _copy_aborted(source: LogSegment, parts: list[LogSegment]) -> None:
    for aborted in source.txn_index:
        home = [part for part in parts if part.base_offset <= aborted.last_offset]
        if home:
            home[-1].txn_index.append(aborted)


def _finish(part: LogSegment, source: LogSegment, environment: Environment) -> None:
    part.become_inactive()
    for fd in part.sync_descriptors():
        try:
            environment.fs.sync(fd)
        finally:
            os.close(fd)
    part.discard()
    environment.fs.set_modified(part.records.path, os.stat(source.records.path).st_mtime_ns)
