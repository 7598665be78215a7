"""The real disk."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.storage.disk.file_system import OsFileSystem, may_exist
from tests.support.disks.unreadable import make_unexaminable

FS = OsFileSystem()


def test_append_puts_parts_at_the_position(tmp_path: Path) -> None:
    fd = FS.open(str(tmp_path / "f"), create=True)
    assert FS.append(fd, [b"ab", memoryview(b"cd")], 2) == 4
    assert (tmp_path / "f").read_bytes() == b"\0\0abcd"
    os.close(fd)


def test_short_writes_are_continued(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fd = FS.open(str(tmp_path / "f"), create=True)
    real = os.pwrite
    monkeypatch.setattr(os, "pwritev", lambda fd, parts, position: real(fd, parts[0][:1], position))
    monkeypatch.setattr(os, "pwrite", lambda fd, data, position: real(fd, data[:2], position))
    assert FS.append(fd, [b"abc", b"defg"], 0) == 7
    assert (tmp_path / "f").read_bytes() == b"abcdefg"
    os.close(fd)


def test_write_that_makes_no_progress_is_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fd = FS.open(str(tmp_path / "f"), create=True)
    monkeypatch.setattr(os, "pwritev", lambda *_: 0)
    monkeypatch.setattr(os, "pwrite", lambda *_: 0)
    with pytest.raises(OSError, match="No space left"):
        FS.append(fd, [b"abc"], 0)
    os.close(fd)


def test_replace_file_leaves_no_temporary(tmp_path: Path) -> None:
    path = tmp_path / "f"
    FS.replace_file(str(path), b"one")
    FS.replace_file(str(path), b"2", sync=False)
    assert path.read_bytes() == b"2"
    assert [entry.name for entry in tmp_path.iterdir()] == ["f"]


def test_interrupted_replacement_leaves_the_old_content(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "f"
    FS.replace_file(str(path), b"old")

    def fail(*_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="Input/output"):
        FS.replace_file(str(path), b"new")
    assert path.read_bytes() == b"old"


def test_allocation_leaves_no_holes(tmp_path: Path) -> None:
    fd = FS.open(str(tmp_path / "f"), create=True)
    FS.allocate(fd, 0, 8192)
    assert os.fstat(fd).st_size == 8192
    assert os.fstat(fd).st_blocks * 512 >= 8192
    with FS.map(fd, 8192) as mapped:
        mapped[:3] = b"abc"
    assert os.pread(fd, 3, 0) == b"abc"
    os.close(fd)


def test_missing_files_are_no_error(tmp_path: Path) -> None:
    FS.unlink(str(tmp_path / "absent"))
    FS.sync_path(str(tmp_path / "absent"))
    FS.remove_tree(str(tmp_path / "absent"))
    FS.make_dir(str(tmp_path))


def test_remove_tree(tmp_path: Path) -> None:
    (tmp_path / "log" / "deeper").mkdir(parents=True)
    (tmp_path / "log" / "file").write_bytes(b"x")
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").write_bytes(b"x")
    (tmp_path / "log" / "link").symlink_to(outside)
    FS.remove_tree(str(tmp_path / "log"))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["outside"]
    assert (outside / "kept").exists()


def test_modification_time(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    FS.set_modified(str(tmp_path / "f"), 7_000_000_000)
    assert os.stat(tmp_path / "f").st_mtime == 7


def test_only_what_is_certainly_not_there_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "f"
    file.touch()
    assert may_exist(str(file))
    assert not may_exist(str(tmp_path / "g"))
    assert not may_exist(str(file / "g"))
    make_unexaminable(monkeypatch, file)
    assert may_exist(str(file))
