"""One log: its segments in order, producer snapshots, leader epochs, topic id, and what checkpoints say of it."""

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
class LogPromises:
    """What the directory around a log says of it."""

    is_clean: bool
    """The last stop was clean and nothing has been started since: every file is finished."""
    offsets: Mapping[str, int]
    """By the name of the checkpoint file."""

    @property
    def recovery_point(self) -> int:
        return self.offsets.get(checkpoints.RECOVERY_POINT_FILE, 0)

    @property
    def log_start_offset(self) -> int:
        return self.offsets.get(checkpoints.LOG_START_OFFSET_FILE, 0)


def verify_partition(path: str, promises: LogPromises, report: Report) -> None:
    """Report what is wrong with the log in a directory."""
    is_clean = promises.is_clean
    files = list_partition(path, report, is_clean=is_clean)
    _check_partition_metadata(path, report)
    epochs = _read_epochs(path, report)
    progress = LogProgress(epochs=_epoch_check(epochs, promises, report) if epochs else None)
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
    _check_snapshots(path, files.snapshot_offsets, log_end_offset, promises, report)
    if is_clean and progress.has_producers and not files.snapshot_offsets:
        report(Finding(path, None, "there are producers in the log and no snapshot of them: a start forgets them all"))
    if is_clean and epochs and epochs[-1].start_offset > log_end_offset:
        _found_epoch_behind(path, epochs[-1], log_end_offset, report)
    _check_promises(path, promises, log_end_offset, report)


def _verify_stable(segment: SegmentFiles, progress: LogProgress, report: Report, *, is_clean: bool) -> int | None:
    """The offset after the segment; None if it is deleted or replaced while it is read: nothing is known of it then."""
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


def _epoch_check(entries: list[EpochEntry], promises: LogPromises, report: Report) -> EpochCheck:
    """After an unclean stop the file is brought up to the batches behind the recovery point."""
    if promises.is_clean:
        return EpochCheck(entries, promises.log_start_offset, _NO_END, report)
    return EpochCheck(entries, entries[0].start_offset, promises.recovery_point, report)


def _found_epoch_behind(path: str, entry: EpochEntry, log_end_offset: int, report: Report) -> None:
    file = os.path.join(path, checkpoints.LEADER_EPOCH_FILE)
    message = f"epoch {entry.epoch} starts at offset {entry.start_offset}, behind the log's end {log_end_offset}"
    report(Finding(file, None, message))


def _check_snapshots(path: str, offsets: list[int], log_end_offset: int, promises: LogPromises, report: Report) -> None:
    for offset in offsets:
        file = os.path.join(path, log_files.snapshot_name(offset))
        if not promises.is_clean and offset >= promises.recovery_point:
            continue  # it is not synced when it is written, and made again if need be
        try:
            with open(file, "rb") as content:
                entries = decode_snapshot(content.read())
        except FileNotFoundError:
            continue  # a running broker has dropped it
        except CorruptSnapshotError as error:
            report(Finding(file, None, str(error)))
            continue
        if offset > log_end_offset:
            report(Finding(file, None, f"the snapshot lies behind the log's end {log_end_offset}"))
        for entry in entries:
            newest = max(entry.last_data_offset, entry.current_txn_first_offset)
            if newest >= offset:
                message = f"producer {entry.producer_id} has offset {newest}, which is not before the snapshot's"
                report(Finding(file, None, message))


def _check_promises(path: str, promises: LogPromises, log_end_offset: int, report: Report) -> None:
    """No checkpoint points behind the log. After an unclean stop, what was not synced may be gone with the power."""
    always = (checkpoints.RECOVERY_POINT_FILE, checkpoints.LOG_START_OFFSET_FILE)
    for name, offset in promises.offsets.items():
        if offset > log_end_offset and (promises.is_clean or name in always):
            file = os.path.join(os.path.dirname(path), name)
            log = os.path.basename(path)
            report(Finding(file, None, f"{log}: offset {offset} lies behind the log's end {log_end_offset}"))
        elif offset < 0:
            file = os.path.join(os.path.dirname(path), name)
            report(Finding(file, None, f"{os.path.basename(path)}: offset {offset} is negative"))
