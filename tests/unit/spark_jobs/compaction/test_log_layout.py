from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.record import SimpleRecord
from spark_jobs.common.job import JobError
from spark_jobs.compaction.log_layout import LogLayout, layouts


def partition(log_dir: Path, name: str, *bases: int) -> None:
    (log_dir / name).mkdir(parents=True)
    for base in bases:
        batch = build_batch([SimpleRecord(1_000, b"k", b"v")], base_offset=base)
        (log_dir / name / f"{base:020}.log").write_bytes(batch)


def test_the_active_segment_is_the_last(tmp_path: Path) -> None:
    partition(tmp_path, "t-0", 3, 10, 20)
    partition(tmp_path, "t-1", 0)
    partition(tmp_path, "u-0", 5)
    found = layouts(str(tmp_path), {"topic": "t", "beyondHighWatermark": "true"})
    assert found == [LogLayout("t", 0, 3, 20), LogLayout("t", 1, 0, 0)]


def test_records_that_were_deleted_are_before_the_log_start(tmp_path: Path) -> None:
    partition(tmp_path, "t-0", 0, 10)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\nt 0 4\n")
    assert layouts(str(tmp_path), {"topic": "t"}) == [LogLayout("t", 0, 4, 10)]


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(JobError, match="gone"):
        layouts(str(tmp_path / "gone"), {"topic": "t"})
