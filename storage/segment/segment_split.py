"""Splits a segment whose offsets are too far apart to be indexed (KAFKA-6264).

Old brokers merged segments in compaction until an offset lay more than 2^31-1 above the base. The batches are copied
unchanged into as many segments as needed, each named by its first batch and written as `.cleaned`. The caller replaces
the source: at start-up with `interrupted_swaps`, while the log is in use with `segment_swap`.

Each aborted transaction of the source is copied to the segment with its marker; Apache loses them until the segment is
recovered. A torn tail is copied to the last segment, where recovery finds it.

Invariants: the source is not changed; the new segments together have as many bytes as the source; they are synced when
this returns.

Kafka: LocalLog.splitOverflowedSegment.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING, NamedTuple

from odradek.protocol.records.errors import CorruptLogError
from odradek.storage import log_files
from odradek.storage.append_info import MAX_RELATIVE_OFFSET, AppendedBatch
from odradek.storage.disk.environment import Environment
from odradek.storage.segment.log_segment import LogSegment

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


class SplitJob(NamedTuple):
    """The segment that a worker process splits."""

    directory: str
    base_offset: int
    config: LogConfig


def split_in_worker(job: SplitJob, report: Callable[[object], None]) -> list[int]:
    """Call `split_segment` in a worker process."""
    return split_segment(job.directory, job.base_offset, job.config, Environment.of_worker())


def can_be_split(segment: LogSegment) -> bool:
    """Whether the segment's only defect is the distance of its offsets: they increase from the base offset on."""
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
    """Write the parts of a segment as `.cleaned` files in its directory; returns their base offsets.

    Raises: OSError, which leaves no `.cleaned` file.
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
    for suffix in log_files.SEGMENT_FILE_SUFFIXES:  # left by a killed attempt
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
    descriptors = part.sync_descriptors()
    try:
        for fd in descriptors:
            environment.fs.sync(fd)
    finally:
        for fd in descriptors:
            os.close(fd)
    part.discard()
    environment.fs.set_modified(part.records.path, os.stat(source.records.path).st_mtime_ns)
