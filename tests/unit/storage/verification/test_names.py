from __future__ import annotations

from pathlib import Path

import pytest

from odradek.storage.verification.findings import Finding
from odradek.storage.verification.names import is_partition_dir, list_partition


@pytest.mark.parametrize("name", [f"{0:020d}.log", f"{9:020d}.snapshot.deleted", "partition.metadata"])
def test_a_file_of_a_log_makes_a_partition_directory(tmp_path: Path, name: str) -> None:
    assert not is_partition_dir(str(tmp_path))
    (tmp_path / name).touch()
    assert is_partition_dir(str(tmp_path))


@pytest.mark.parametrize("name", ["0.log", "replication-offset-checkpoint", "meta.properties", ".lock"])
def test_other_files_make_none(tmp_path: Path, name: str) -> None:
    (tmp_path / name).touch()
    assert not is_partition_dir(str(tmp_path))


def test_files_are_listed_by_their_kind(tmp_path: Path) -> None:
    for name in (20, 0, 5):
        (tmp_path / f"{name:020d}.log").touch()
        (tmp_path / f"{name:020d}.index").touch()
    for name in ("leader-epoch-checkpoint.tmp", f"{5:020d}.snapshot", f"{3:020d}.log.deleted"):
        (tmp_path / name).touch()
    findings: list[Finding] = []
    files = list_partition(str(tmp_path), findings.append, is_clean=True)
    assert files.base_offsets == [0, 5, 20]
    assert files.snapshot_offsets == [5]
    assert findings == []


def test_what_should_not_be_there_is_found(tmp_path: Path) -> None:
    for name in ("x", "1.log", f"{7:020d}.txnindex", f"{7:020d}.log.swap"):
        (tmp_path / name).touch()
    findings: list[Finding] = []
    list_partition(str(tmp_path), findings.append, is_clean=True)
    assert {Path(finding.path).name for finding in findings} == {
        "x",
        "1.log",
        f"{7:020d}.txnindex",
        f"{7:020d}.log.swap",
    }
