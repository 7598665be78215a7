"""The files of a partition directory by their names: segments, snapshots, temporary files, unknown files."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import Final

from odradek.storage import log_files
from odradek.storage.disk.checkpoint_files import LEADER_EPOCH_FILE, PARTITION_METADATA_FILE
from odradek.storage.verification.findings import Finding, Report

_OFFSET_NAME: Final = re.compile(
    r"(\d{20})(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)(\.deleted|\.cleaned|\.swap)?", re.ASCII
)
_OTHER_NAMES: Final = frozenset(
    name + suffix for name in (LEADER_EPOCH_FILE, PARTITION_METADATA_FILE) for suffix in ("", ".tmp")
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionFiles:
    """The segments and snapshots in a partition directory."""

    base_offsets: list[int]
    """The base offsets of the segments, ascending."""
    snapshot_offsets: list[int]


def is_partition_dir(path: str) -> bool:
    """Whether the directory contains a log: any file has the name of a log's file."""
    return any(_OFFSET_NAME.fullmatch(name) or name in _OTHER_NAMES for name in os.listdir(path))


def list_partition(path: str, report: Report, *, is_clean: bool) -> PartitionFiles:
    """The segments and snapshots of a log; reports unknown, temporary and orphaned files."""
    found: dict[str, list[int]] = {
        suffix: [] for suffix in (*log_files.SEGMENT_FILE_SUFFIXES, log_files.SNAPSHOT_FILE_SUFFIX)
    }
    for name in sorted(os.listdir(path)):
        match = _OFFSET_NAME.fullmatch(name)
        if match is None:
            if name not in _OTHER_NAMES:
                report(Finding(os.path.join(path, name), None, "the name is not one of a log's files"))
        elif match[3] is None:
            found[match[2]].append(int(match[1]))
        elif is_clean and match[3] != log_files.DELETED_FILE_SUFFIX:
            report(Finding(os.path.join(path, name), None, "a clean stop left an unfinished compaction or split"))
    base_offsets = set(found[log_files.LOG_FILE_SUFFIX])
    for suffix in log_files.SEGMENT_FILE_SUFFIXES[1:]:
        for offset in found[suffix]:
            file = os.path.join(path, log_files.offset_name(offset, suffix))
            if offset not in base_offsets and os.path.exists(file):
                report(Finding(file, None, "an index without a log"))
    return PartitionFiles(base_offsets=sorted(base_offsets), snapshot_offsets=found[log_files.SNAPSHOT_FILE_SUFFIX])
