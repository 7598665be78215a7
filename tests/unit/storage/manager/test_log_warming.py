"""The reads in a directory before its log is opened."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.storage.manager.log_warming import END_BYTES, warm_dirs


def test_small_files_and_the_ends_of_large_ones_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "partition.metadata").write_bytes(bytes(30))
    (tmp_path / "large.log").write_bytes(bytes(3 * END_BYTES))
    (tmp_path / "empty.txnindex").touch()
    (tmp_path / "directory").mkdir()
    reads = []
    pread = os.pread

    def noted(fd: int, size: int, position: int) -> bytes:
        read = pread(fd, size, position)
        reads.append((Path(os.readlink(f"/proc/self/fd/{fd}")).name, len(read), position))
        return read

    monkeypatch.setattr(os, "pread", noted)
    warm_dirs([str(tmp_path)])
    assert sorted(reads) == [("large.log", END_BYTES, 2 * END_BYTES), ("partition.metadata", 30, 0)]


def test_what_cannot_be_read_is_left_to_who_opens_it(tmp_path: Path) -> None:
    (tmp_path / "gone.log").symlink_to(tmp_path / "nowhere")
    warm_dirs([str(tmp_path / "not-there"), str(tmp_path)])
