"""The reads in a directory before its log is opened."""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from odradek.storage.manager.log_warming import CHECKPOINTS, END_BYTES, warm_data_dirs, warm_log_dirs


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
    warm_log_dirs([str(tmp_path)])
    assert sorted(reads) == [("large.log", END_BYTES, 2 * END_BYTES), ("partition.metadata", 30, 0)]


def test_what_cannot_be_read_is_left_to_who_opens_it(tmp_path: Path) -> None:
    (tmp_path / "gone.log").symlink_to(tmp_path / "nowhere")
    warm_log_dirs([str(tmp_path / "not-there"), str(tmp_path)])


LOCK = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"


def test_locks_in_a_data_directory_outlive_it(tmp_path: Path) -> None:
    """A lock of fcntl ends when its process closes any descriptor of the file."""
    database, checkpoint = tmp_path / "odradek-metadata.db", tmp_path / CHECKPOINTS[0]
    for path in (database, checkpoint):
        path.write_bytes(b"0\n0\n")
    with database.open("r+") as locked:
        fcntl.lockf(locked, fcntl.LOCK_EX | fcntl.LOCK_NB)
        warm_data_dirs([str(tmp_path), str(tmp_path / "not-there")])
        other = subprocess.run([sys.executable, "-c", LOCK, str(database)], capture_output=True, text=True, check=False)
    assert "BlockingIOError" in other.stderr


def test_the_checkpoints_of_a_data_directory_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*CHECKPOINTS, ".lock", "meta.properties"):
        (tmp_path / name).write_bytes(b"0\n0\n")
    opened = []
    open_file = os.open
    monkeypatch.setattr(os, "open", lambda path, flags: opened.append(Path(path).name) or open_file(path, flags))
    warm_data_dirs([str(tmp_path)])
    assert sorted(opened) == sorted(CHECKPOINTS)
