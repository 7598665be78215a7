from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from odradek.testing.node.files import data_directory
from odradek.testing.node.files.data_directory import DataDirectory, parent_directory


def test_each_broker_has_its_own_and_removes_it(tmp_path: Path) -> None:
    parent = str(tmp_path / "parent")
    one, two = DataDirectory(parent), DataDirectory(parent)
    assert one.path != two.path
    (Path(one.path) / "file").write_bytes(b"x")
    one.remove()
    one.remove()
    assert os.listdir(parent) == [os.path.basename(two.path)]
    two.remove()
    assert os.stat(parent).st_mode & 0o777 == 0o700


def test_directories_of_killed_processes_are_removed_by_the_next_start(tmp_path: Path) -> None:
    parent = str(tmp_path)
    script = (
        f"from odradek.testing.node.files.data_directory import *; print(DataDirectory({parent!r}).path); os._exit(9)"
    )
    killed = subprocess.run([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, check=False)
    script = script.replace("os._exit(9)", "")
    left = killed.stdout.strip() or os.listdir(parent)[0]
    assert os.listdir(parent) == [os.path.basename(left)]
    mine = DataDirectory(parent)
    other = DataDirectory(parent)
    assert sorted(os.listdir(parent)) == sorted([os.path.basename(mine.path), os.path.basename(other.path)])
    mine.remove()
    other.remove()


def test_memory_is_used_where_there_is_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    in_temporary = os.path.join(tempfile.gettempdir(), f"odradek-testing-{os.getuid()}")
    assert parent_directory(str(tmp_path)) == str(tmp_path / f"odradek-testing-{os.getuid()}")
    assert parent_directory(str(tmp_path / "missing")) == in_temporary
    found = os.statvfs(tmp_path)
    free = found.f_bavail * found.f_frsize
    monkeypatch.setattr(data_directory, "FREE_BYTES_MIN", free * 2)
    assert parent_directory(str(tmp_path)) == in_temporary
