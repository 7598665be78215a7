from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.testing.node.files.unsynced_files import UnsyncedFiles


def test_files_are_written_and_nothing_waits_for_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(descriptor: int) -> None:
        raise AssertionError("fsync")

    monkeypatch.setattr(os, "fsync", fsync)
    files = UnsyncedFiles()
    path = str(tmp_path / "file")
    files.write_file(path, b"one", sync=True)
    files.replace_file(path, b"two", sync=True)
    files.sync_path(path)
    files.sync_dir(str(tmp_path))
    descriptor = files.open(path)
    files.sync(descriptor)
    os.close(descriptor)
    assert Path(path).read_bytes() == b"two"
