"""Replaces segments by rewritten ones, after compaction and after a split.

    step                                          a process that dies during this step leaves
    new segments   .cleaned -> .swap              a .cleaned file: the next start deletes it, and the .swap files above
    the directory is fsynced
    old segments   -> .deleted                    .swap files only: the next start finishes the replacement
    new segments   .swap -> plain                 the same
    the directory is fsynced

The first step goes from the highest base offset down: while a `.cleaned` file exists, the `.swap` files above it are
incomplete. Kafka syncs the directory only at the end; here the first sync comes before any old segment is renamed, so
that a loss of power cannot lose both the old segment and the new one.

Invariants: a reader finds either the old segments or the new ones; regions of old files stay readable until those are
unlinked, `file.delete.delay.ms` later; no position in a replaced file is kept.

Kafka: LocalLog.replaceSegments, UnifiedLog.replaceSegments.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from odradek.storage import log_files
from odradek.storage.log.segment_deletion import delete_snapshots
from odradek.storage.segment.log_segment import LogSegment

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from odradek.storage.config.log_config import LogConfig
    from odradek.storage.disk.environment import Environment
    from odradek.storage.disk.file_system import FileSystem
    from odradek.storage.log.log_state import LogState
    from odradek.storage.segment.log_segments import LogSegments


def rename_to_swap(
    directory: str, base_offsets: Iterable[int], config: LogConfig, environment: Environment
) -> list[LogSegment]:
    """The first step: rename `.cleaned` to `.swap`. Returns the new segments by base offset. Raises OSError."""
    segments = [
        LogSegment.open(directory, base_offset, config, environment, suffix=log_files.CLEANED_FILE_SUFFIX)
        for base_offset in sorted(base_offsets)
    ]
    for segment in reversed(segments):
        segment.change_suffix(log_files.CLEANED_FILE_SUFFIX, log_files.SWAP_FILE_SUFFIX)
    return segments


def put_in_place(
    segments: LogSegments, new: Sequence[LogSegment], source_base_offsets: Iterable[int]
) -> list[LogSegment]:
    """The steps after the first sync. Returns the old segments, renamed `.deleted`; the caller unlinks them later.

    Sources that no longer exist are skipped. Raises OSError.
    """
    old = [segment for base_offset in source_base_offsets if (segment := segments.get(base_offset)) is not None]
    for segment in old:
        segments.remove(segment.base_offset)
    for segment in new:
        segments.add(segment)
    for segment in old:
        segment.mark_deleted()
    for segment in new:
        segment.change_suffix(log_files.SWAP_FILE_SUFFIX, "")
    return old


def replace_segments(log: LogState, new: Sequence[LogSegment], source_base_offsets: Iterable[int]) -> None:
    """`put_in_place` for a log in use: also updates its snapshots and watermarks. Raises OSError."""
    old = put_in_place(log.segments, new, source_base_offsets)
    log.local_log.delete_later(old)
    taken = {segment.base_offset for segment in new}
    delete_snapshots(log, [segment for segment in old if segment.base_offset not in taken])
    log.watermarks.on_segments_replaced({segment.base_offset for segment in old})
    log.log_dir.sync_queue.sync_dir(log.local_log.dir)


def remove_cleaned_files(directory: str, fs: FileSystem) -> None:
    """Delete the `.cleaned` files of a directory; a missing directory is no error. Raises OSError."""
    try:
        names = os.listdir(directory)
    except FileNotFoundError:
        return
    for name in names:
        if name.endswith(log_files.CLEANED_FILE_SUFFIX):
            fs.unlink(os.path.join(directory, name))
