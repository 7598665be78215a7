from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.testing.node.files.fallible_files import FallibleFiles


def test_a_full_disk_takes_nothing_and_reads_and_removes_as_before(tmp_path: Path) -> None:
    files = FallibleFiles()
    file = tmp_path / "file"
    files.write_file(str(file), b"content")
    files.is_full = True
    fd = files.open(str(file), create=True)
    refused: list[Callable[[], object]] = [
        lambda: files.append(fd, [b"x"], 0),
        lambda: files.allocate(fd, 0, 10),
        lambda: files.write_file(str(file), b"x"),
        lambda: files.replace_file(str(file), b"x"),
        lambda: files.open(str(tmp_path / "new"), create=True),
        lambda: files.make_dir(str(tmp_path / "directory")),
    ]
    for write in refused:
        with pytest.raises(OSError, match="No space left") as error:
            write()
        assert error.value.errno == errno.ENOSPC
    os.close(fd)
    files.make_dir(str(tmp_path))
    assert file.read_bytes() == b"content"
    assert files.space(str(tmp_path))[0] == 0
    files.unlink(str(file))
    files.is_full = False
    files.write_file(str(file), b"again")
    assert files.space(str(tmp_path))[0] > 0
    assert sorted(os.listdir(tmp_path)) == ["file"]


def test_a_slow_disk_takes_its_time_for_each_sync(tmp_path: Path) -> None:
    files = FallibleFiles()
    files.sync_ms = 20
    started = time.monotonic()
    files.sync(0)
    files.sync_path(str(tmp_path))
    files.sync_dir(str(tmp_path))
    assert time.monotonic() - started >= 0.06
    files.write_file(str(tmp_path / "file"), b"")
