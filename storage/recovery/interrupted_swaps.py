"""Files that a compaction, a split or a deletion has left half-way, brought to one side or the other.

    .deleted    has left the log; is removed
    .cleaned    was being written; is removed, and so is every .swap at or above the smallest of them: the output was
                being renamed from the highest base down, so it is not all there
    .swap       complete; the files it replaces are removed and it takes their place

Replaced are the files that lie in the range the .swap files cover. A segment that begins below and reaches into that
range is replaced too: the first output of a split is named by its first batch, which may lie above the source's name.
Apache leaves such a source behind, and the records are in the log twice.

Invariant: dying anywhere in here and beginning again leads to the same result.

Kafka: LogLoader.removeTempFilesAndCollectSwapFiles and the passes that follow it.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from odradek.storage import log_files
from odradek.storage.segment.file_records import CorruptLogError
from odradek.storage.segment.log_segment import LogSegment

if TYPE_CHECKING:
    from odradek.storage.config.log_config import LogConfig
    from odradek.storage.disk.environment import Environment

logger = logging.getLogger(__name__)


def finish_interrupted_swaps(directory: str, config: LogConfig, environment: Environment) -> None:
    """Bring the files of a log's directory into a state of which every file with a plain name is part."""
    swaps = _without_temporary_files(directory, environment)
    if not swaps:
        return
    low, high = _range_of(directory, swaps, config, environment)
    for name in file_names(directory):
        offset = log_files.offset_of(name)
        if name not in swaps and offset is not None and low <= offset < high:
            logger.info("Deleting segment files %s that is compacted but has not been deleted yet.", name)
            environment.fs.unlink(os.path.join(directory, name))
    # Those of the .log files first: a plain index next to a .log.swap would be taken for one that is replaced.
    for name in sorted(swaps, key=lambda name: log_files.LOG_FILE_SUFFIX not in name):
        logger.info("Recovering file %s in %s by renaming from .swap files.", name, directory)
        path = os.path.join(directory, name)
        environment.fs.rename(path, path.removesuffix(log_files.SWAP_FILE_SUFFIX))
    environment.fs.sync_dir(directory)


def file_names(directory: str) -> list[str]:
    """The plain files in a directory, by name."""
    return sorted(entry.name for entry in os.scandir(directory) if entry.is_file())


def _without_temporary_files(directory: str, environment: Environment) -> list[str]:
    """Remove what is of no use any more; returns the .swap files that are complete."""
    swaps, doomed, cleaned = [], [], []
    for name in file_names(directory):
        if name.endswith(log_files.DELETED_FILE_SUFFIX):
            doomed.append(name)
        elif name.endswith(log_files.CLEANED_FILE_SUFFIX):
            cleaned.append(name)
        elif name.endswith(log_files.SWAP_FILE_SUFFIX):
            swaps.append(name)
    if cleaned:
        smallest = min((offset for name in cleaned if (offset := log_files.offset_of(name)) is not None), default=0)
        doomed += [name for name in swaps if (log_files.offset_of(name) or 0) >= smallest]
    # The .cleaned files last: while one is there, the .swap files above it are known to be incomplete.
    for name in [*doomed, *cleaned]:
        environment.fs.unlink(os.path.join(directory, name))
    return [name for name in swaps if name not in doomed]


def _range_of(directory: str, swaps: list[str], config: LogConfig, environment: Environment) -> tuple[int, int]:
    """The offsets that the .swap files have taken over: from the lowest base to the highest next offset."""
    log_suffix = log_files.LOG_FILE_SUFFIX + log_files.SWAP_FILE_SUFFIX
    bases = [
        offset for name in swaps if name.endswith(log_suffix) and (offset := log_files.offset_of(name)) is not None
    ]
    if not bases:
        return 0, 0  # the .log files have been renamed already, their indexes are to follow
    ends = []
    for base in bases:
        segment = LogSegment.open(directory, base, config, environment, suffix=log_files.SWAP_FILE_SUFFIX)
        ends.append(segment.read_next_offset())
        segment.discard()
    low = min(bases)
    below = max((base for base in segment_bases(directory) if base < low), default=None)
    if below is not None and _reaches(low, LogSegment.open(directory, below, config, environment)):
        low = below
    return low, max(ends)


def segment_bases(directory: str) -> list[int]:
    """The base offsets of the segments in a directory."""
    return [
        offset
        for name in file_names(directory)
        if name.endswith(log_files.LOG_FILE_SUFFIX) and (offset := log_files.offset_of(name)) is not None
    ]


def _reaches(offset: int, segment: LogSegment) -> bool:
    """Whether a segment has the offset or a later one. Its index is not asked: after a crash it may say anything."""
    try:
        return any(where.last_offset >= offset for where in segment.records.positions())
    except CorruptLogError:
        return False
    finally:
        segment.discard()
