"""Finishes or undoes an interrupted compaction, split or deletion at start, by the suffixes of the files.

    .deleted    removed from the log: deleted
    .cleaned    incomplete: deleted, and so is every .swap at or above the smallest .cleaned offset, because the output
                is renamed from the highest base offset down and is therefore incomplete
    .swap       complete: the files that it replaces are deleted, and it is renamed to its plain name

The replaced files are those in the offset range of the .swap files. A segment that begins below and reaches into that
range is replaced too: the first output of a split is named by its first batch, whose offset may lie above the name of
the source. Apache leaves such a source, and the records are in the log twice.

Invariant: if the process dies in here, the next start reaches the same result.

Kafka: LogLoader.removeTempFilesAndCollectSwapFiles, LogLoader.load.
"""

from __future__ import annotations

import logging
import os
from typing import TYPE_CHECKING

from odradek.protocol.records.errors import CorruptLogError
from odradek.storage import log_files
from odradek.storage.segment.log_segment import LogSegment

if TYPE_CHECKING:
    from odradek.storage.config.log_config import LogConfig
    from odradek.storage.disk.environment import Environment

logger = logging.getLogger(__name__)


def finish_interrupted_swaps(directory: str, config: LogConfig, environment: Environment) -> None:
    """Finish or undo the interrupted changes: afterwards, every segment file with a plain name belongs to the log.

    Raises: OSError.
    """
    swaps = _without_temporary_files(directory, environment)
    if not swaps:
        return
    low, high = _range_of(directory, swaps, config, environment)
    for name in file_names(directory):
        offset = log_files.offset_of(name)
        if name not in swaps and offset is not None and low <= offset < high:
            logger.info("Deleting segment files %s that is compacted but has not been deleted yet.", name)
            environment.fs.unlink(os.path.join(directory, name))
    # The .log files first: the next start would delete a plain index beside a .log.swap as a replaced one.
    for name in sorted(swaps, key=lambda name: log_files.LOG_FILE_SUFFIX not in name):
        logger.info("Recovering file %s in %s by renaming from .swap files.", name, directory)
        path = os.path.join(directory, name)
        environment.fs.rename(path, path.removesuffix(log_files.SWAP_FILE_SUFFIX))
    environment.fs.sync_dir(directory)


def file_names(directory: str) -> list[str]:
    """The names of the regular files in a directory, sorted."""
    return sorted(entry.name for entry in os.scandir(directory) if entry.is_file())


def _without_temporary_files(directory: str, environment: Environment) -> list[str]:
    """Delete the obsolete and incomplete files; returns the complete .swap files."""
    swaps, obsolete, cleaned = [], [], []
    for name in file_names(directory):
        if name.endswith(log_files.DELETED_FILE_SUFFIX):
            obsolete.append(name)
        elif name.endswith(log_files.CLEANED_FILE_SUFFIX):
            cleaned.append(name)
        elif name.endswith(log_files.SWAP_FILE_SUFFIX):
            swaps.append(name)
    if cleaned:
        smallest = min((offset for name in cleaned if (offset := log_files.offset_of(name)) is not None), default=0)
        obsolete += [name for name in swaps if (log_files.offset_of(name) or 0) >= smallest]
    # The .cleaned files last: while one exists, the .swap files above it are known to be incomplete.
    for name in [*obsolete, *cleaned]:
        environment.fs.unlink(os.path.join(directory, name))
    return [name for name in swaps if name not in obsolete]


def _range_of(directory: str, swaps: list[str], config: LogConfig, environment: Environment) -> tuple[int, int]:
    """The offset range of the .swap files: from the lowest base offset to the highest next offset."""
    log_suffix = log_files.LOG_FILE_SUFFIX + log_files.SWAP_FILE_SUFFIX
    bases = [
        offset for name in swaps if name.endswith(log_suffix) and (offset := log_files.offset_of(name)) is not None
    ]
    if not bases:
        return 0, 0  # the .log files are renamed already, only indexes are left
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
    """Whether a segment contains the offset or a later one. Scans the batches: after a crash the index may be wrong."""
    try:
        return any(where.last_offset >= offset for where in segment.records.positions())
    except CorruptLogError:
        return False
    finally:
        segment.discard()
