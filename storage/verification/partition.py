"""Verifies one log: its segments in order, producer snapshots, leader epochs, topic id, and checkpoints."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from odradek.storage import log_files
from odradek.storage.disk import checkpoint_files as checkpoints
from odradek.storage.producers.producer_state_manager import CorruptSnapshotError, decode_snapshot
from odradek.storage.verification.epoch_check import EpochCheck, check_order
from odradek.storage.verification.findings import Finding, Report
from odradek.storage.verification.names import list_partition
from odradek.storage.verification.segment import LogProgress, SegmentFiles, verify_segment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.storage.offsets import EpochEntry

_NO_END = 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class LogCheckpoints:
    """The clean-shutdown marker and the checkpoints of the log directory for one log."""

    is_clean: bool
    """The last stop was clean and no broker was started since: every file is complete."""
    offsets: Mapping[str, int]
    """The log's offset in each checkpoint file, by the name of the file."""

    @property
    def recovery_point(self) -> int:
        return self.offsets.get(checkpoints.RECOVERY_POINT_FILE, 0)

    @property
    def log_start_offset(self) -> int:
        return self.offsets.get(checkpoints.LOG_START_OFFSET_FILE, 0)


def verify_partition(path: str, stored: LogCheckpoints, report: Report) -> None:
    """Verify the log in a directory. Raises OSError."""
    is_clean = stored.is_clean
    files = list_partition(path, report, is_clean=is_clean)
    _check_partition_metadata(path, report)
    epochs = _read_epochs(path, report)
    progress = LogProgress(epochs=_epoch_check(epochs, stored, report) if epochs else None)
    log_end_offset: int | None = None
    following = [*files.base_offsets[1:], None]
    for base_offset, next_base_offset in zip(files.base_offsets, following, strict=True):
        segment = SegmentFiles(
            directory=path,
            base_offset=base_offset,
            next_base_offset=next_base_offset,
            is_open=next_base_offset is None and not is_clean,
        )
        log_end_offset = _verify_stable(segment, progress, report, is_clean=is_clean)
    if log_end_offset is None:
        return
    _check_snapshots(path, files.snapshot_offsets, log_end_offset, stored, report)
    if is_clean and progress.has_producers and not files.snapshot_offsets:
        report(Finding(path, None, "the log has producers but no producer snapshot: a start forgets all producers"))
    if is_clean and epochs and epochs[-1].start_offset > log_end_offset:
        _found_epoch_behind(path, epochs[-1], log_end_offset, report)
    _check_checkpoints(path, stored, log_end_offset, report)


def _verify_stable(segment: SegmentFiles, progress: LogProgress, report: Report, *, is_clean: bool) -> int | None:
    """The offset after the last batch of the segment; None if it was deleted or replaced during the check."""
    path = segment.path(log_files.LOG_FILE_SUFFIX)
    if is_clean:
        return verify_segment(segment, progress, report)
    found: list[Finding] = []
    try:
        before = os.stat(path).st_ino
        next_offset = verify_segment(segment, progress, found.append)
        if os.stat(path).st_ino != before:
            return None
    except FileNotFoundError:
        return None
    for finding in found:
        report(finding)
    return next_offset


def _check_partition_metadata(path: str, report: Report) -> None:
    file = os.path.join(path, checkpoints.PARTITION_METADATA_FILE)
    try:
        checkpoints.read_partition_metadata(file)
    except checkpoints.CheckpointError as error:
        report(Finding(file, None, str(error)))


def _read_epochs(path: str, report: Report) -> list[EpochEntry]:
    """The entries if they are in order, else none."""
    file = os.path.join(path, checkpoints.LEADER_EPOCH_FILE)
    try:
        entries = checkpoints.read_epochs(file)
    except checkpoints.CheckpointError as error:
        report(Finding(file, None, str(error)))
        return []
    return entries if check_order(file, entries, report) else []


def _epoch_check(entries: list[EpochEntry], stored: LogCheckpoints, report: Report) -> EpochCheck:
    """The check of the batches' epochs: after an unclean stop only below the recovery point, because the next start
    rebuilds the entries above it.
    """
    if stored.is_clean:
        return EpochCheck(entries, stored.log_start_offset, _NO_END, report)
    return EpochCheck(entries, entries[0].start_offset, stored.recovery_point, report)


def _found_epoch_behind(path: str, entry: EpochEntry, log_end_offset: int, report: Report) -> None:
    file = os.path.join(path, checkpoints.LEADER_EPOCH_FILE)
    message = f"epoch {entry.epoch} starts at offset {entry.start_offset}, after the log end {log_end_offset}"
    report(Finding(file, None, message))


def _check_snapshots(
    path: str, offsets: list[int], log_end_offset: int, stored: LogCheckpoints, report: Report
) -> None:
    for offset in offsets:
        file = os.path.join(path, log_files.snapshot_name(offset))
        if not stored.is_clean and offset >= stored.recovery_point:
            continue  # it may not be synced, and the next start writes it again
        try:
            with open(file, "rb") as content:
                entries = decode_snapshot(content.read())
        except FileNotFoundError:
            continue  # a running broker deleted it
        except CorruptSnapshotError as error:
            report(Finding(file, None, str(error)))
            continue
        if offset > log_end_offset:
            report(Finding(file, None, f"the snapshot lies after the log end {log_end_offset}"))
        for entry in entries:
            newest = max(entry.last_data_offset, entry.current_txn_first_offset)
            if newest >= offset:
                message = f"producer {entry.producer_id} has offset {newest}, which is not below the snapshot's offset"
                report(Finding(file, None, message))


def _check_checkpoints(path: str, stored: LogCheckpoints, log_end_offset: int, report: Report) -> None:
    """No checkpoint is above the log end. After an unclean stop, only recovery point and log start are checked: a loss
    of power may have removed unsynced records.
    """
    always = (checkpoints.RECOVERY_POINT_FILE, checkpoints.LOG_START_OFFSET_FILE)
    for name, offset in stored.offsets.items():
        if offset > log_end_offset and (stored.is_clean or name in always):
            file = os.path.join(os.path.dirname(path), name)
            log = os.path.basename(path)
            report(Finding(file, None, f"{log}: offset {offset} lies after the log end {log_end_offset}"))
        elif offset < 0:
            file = os.path.join(os.path.dirname(path), name)
            report(Finding(file, None, f"{os.path.basename(path)}: offset {offset} is negative"))
