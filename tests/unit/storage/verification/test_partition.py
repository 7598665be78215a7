from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.storage.disk.log_dir import CLEAN_SHUTDOWN_FILE
from odradek.storage.producers.producer_state import BatchMetadata, ProducerStateEntry
from odradek.storage.producers.producer_state_manager import encode_snapshot
from odradek.storage.verification import partition
from odradek.storage.verification.findings import Report
from odradek.storage.verification.segment import LogProgress, SegmentFiles
from tests.support.disks.damaged_logs import (
    LOG,
    Damage,
    append,
    copy_of_clean,
    cut,
    findings_in,
    overwrite,
    remove,
    replace,
)

SNAPSHOT = f"{LOG}/{139:020d}.snapshot"
RECOVERY_POINT = "recovery-point-offset-checkpoint"
AHEAD = encode_snapshot([ProducerStateEntry(4, 0, batch=BatchMetadata(0, 139, 0, 5))])

IN_ANY_STATE: dict[str, tuple[Damage, str]] = {
    "topic id": (replace(f"{LOG}/partition.metadata", "topic_id", "topic"), "Malformed partition metadata file"),
    "epochs": (replace(f"{LOG}/leader-epoch-checkpoint", "0 0", "0"), "Malformed line in checkpoint file"),
    "order of epochs": (
        replace(f"{LOG}/leader-epoch-checkpoint", "1\n0 0", "2\n3 0\n2 5"),
        "leader-epoch-checkpoint: epoch 2 from offset 5 on does not follow epoch 3 from offset 0 on",
    ),
    "another epoch": (
        replace(f"{LOG}/leader-epoch-checkpoint", "0 0", "4 0"),
        f"{LOG}/{0:020d}.log:0: the batch that ends at offset 0 has leader epoch 0, leader-epoch-checkpoint says 4",
    ),
    "old snapshot": (
        overwrite(f"{LOG}/{128:020d}.snapshot", 20, b"?"),
        f"{LOG}/{128:020d}.snapshot: Snapshot is corrupt",
    ),
    "cut snapshot": (cut(f"{LOG}/{37:020d}.snapshot", 6), f"{LOG}/{37:020d}.snapshot: Snapshot of 6 bytes is shorter"),
    "recovery point": (
        replace(RECOVERY_POINT, "139", "140"),
        f"{RECOVERY_POINT}: {LOG}: offset 140 lies after the log",
    ),
    "log start": (
        replace("log-start-offset-checkpoint", "0\n0\n", "0\n1\ncaptured 0 140\n"),
        f"log-start-offset-checkpoint: {LOG}: offset 140 lies after the log end 139",
    ),
    "negative": (replace(RECOVERY_POINT, "139", "-2"), f"{RECOVERY_POINT}: {LOG}: offset -2 is negative"),
}


def fill_cleaner(directory: Path) -> None:
    (directory / "cleaner-offset-checkpoint").write_text("0\n1\ncaptured 0 140\n")


AFTER_A_CLEAN_STOP: dict[str, tuple[Damage, str]] = {
    "no snapshot": (remove(f"{LOG}/*.snapshot"), "the log has producers but no producer snapshot: a start forgets"),
    "last snapshot": (overwrite(SNAPSHOT, 20, b"?"), f"{SNAPSHOT}: Snapshot is corrupt (CRC is no longer valid)"),
    "snapshot behind": (append(f"{LOG}/{150:020d}.snapshot", encode_snapshot([])), "lies after the log end 139"),
    "snapshot ahead": (append(f"{LOG}/{138:020d}.snapshot", AHEAD), "producer 4 has offset 139, which is not below"),
    "epoch behind": (
        replace(f"{LOG}/leader-epoch-checkpoint", "1\n0 0", "2\n0 0\n1 140"),
        "leader-epoch-checkpoint: epoch 1 starts at offset 140, after the log end 139",
    ),
    "high watermark": (replace("replication-offset-checkpoint", "139", "140"), "replication-offset-checkpoint: captur"),
    "cleaner": (fill_cleaner, "cleaner-offset-checkpoint: captured-0: offset 140 lies after"),
}


@pytest.mark.parametrize("is_clean", [True, False], ids=["clean", "open"])
@pytest.mark.parametrize(("damage", "said"), IN_ANY_STATE.values(), ids=IN_ANY_STATE)
def test_damage_is_found_in_any_state(tmp_path: Path, damage: Damage, said: str, is_clean: bool) -> None:
    directory = copy_of_clean(tmp_path / "data", is_clean=is_clean)
    damage(directory)
    found = findings_in(directory)
    assert len(found) == 1, found
    assert said in found[0]


@pytest.mark.parametrize(("damage", "said"), AFTER_A_CLEAN_STOP.values(), ids=AFTER_A_CLEAN_STOP)
def test_what_power_loss_leaves_is_damage_only_after_a_clean_stop(tmp_path: Path, damage: Damage, said: str) -> None:
    directory = copy_of_clean(tmp_path / "data")
    damage(directory)
    found = findings_in(directory)
    assert len(found) == 1, found
    assert said in found[0]
    (directory / CLEAN_SHUTDOWN_FILE).unlink()
    (directory / RECOVERY_POINT).write_text("0\n1\ncaptured 0 138\n")
    assert findings_in(directory) == []


def test_epochs_behind_the_recovery_point_may_be_missing(tmp_path: Path) -> None:
    directory = copy_of_clean(tmp_path / "data", is_clean=False)
    (directory / RECOVERY_POINT).write_text("0\n1\ncaptured 0 0\n")
    replace(f"{LOG}/leader-epoch-checkpoint", "0 0", "4 0")(directory)
    assert findings_in(directory) == []


@pytest.mark.parametrize("name", ["partition.metadata", "leader-epoch-checkpoint"])
def test_small_files_may_be_missing(tmp_path: Path, name: str) -> None:
    directory = copy_of_clean(tmp_path / "data")
    (directory / LOG / name).unlink()
    assert findings_in(directory) == []


@pytest.mark.parametrize("change", ["deleted", "replaced"])
def test_findings_in_a_segment_deleted_during_the_check_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    directory = copy_of_clean(tmp_path / "data", is_clean=False)
    overwrite(f"{LOG}/{0:020d}.log", 75, b"?")(directory)
    verify_segment = partition.verify_segment

    def verify_and_change(files: SegmentFiles, progress: LogProgress, report: Report) -> int:
        next_offset = verify_segment(files, progress, report)
        if files.base_offset:
            return next_offset
        if files.base_offset:
            return next_offset
        if files.base_offset:
            return next_offset
        path = files.path(".log")
        os.rename(path, path + ".deleted")
        if change == "replaced":
            Path(path).write_bytes(b"")
        return next_offset

    assert len(findings_in(directory)) == 1
    monkeypatch.setattr(partition, "verify_segment", verify_and_change)
    assert findings_in(directory) == []
