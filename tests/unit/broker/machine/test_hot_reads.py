from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from odradek.broker.machine.hot_reads import PROBE_STEP, is_in_memory, read_hot
from odradek.storage.disk.file_system import OsFileSystem
from odradek.storage.disk.open_files import OpenFiles
from odradek.storage.segment.file_records import FileRecords


@pytest.fixture
def records(tmp_path: Path) -> FileRecords:
    (tmp_path / "file").write_bytes(bytes(range(200)))
    return FileRecords.existing(str(tmp_path / "file"), OsFileSystem(), OpenFiles())


def raising(code: int, times: list[int]) -> object:
    """A preadv that fails with `code` when it is told not to wait."""
    real = os.preadv

    def preadv(fd: int, buffers: Sequence[bytearray], offset: int, flags: int = 0) -> int:
        times.append(flags)
        if flags:
            raise OSError(code, os.strerror(code))
        return real(fd, buffers, offset)

    return preadv


def test_bytes_just_written_are_read(records: FileRecords) -> None:
    assert read_hot(records.region(10, 5)) == bytes(range(10, 15))
    assert is_in_memory(records.fileno(), 0, 200)
    assert is_in_memory(records.fileno(), 500, PROBE_STEP), "beyond the end there is nothing to wait for"


def test_a_region_that_was_cut_meanwhile_is_not_read(records: FileRecords) -> None:
    region = records.region(100, 100)
    os.truncate(records.path, 150)
    assert read_hot(region) is None


def test_read_that_would_wait_returns_none(records: FileRecords, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "preadv", raising(errno.EAGAIN, []))
    assert read_hot(records.region(10, 5)) is None
    assert not is_in_memory(records.fileno(), 0, 200)


def test_a_file_system_that_cannot_tell_is_read(records: FileRecords, monkeypatch: pytest.MonkeyPatch) -> None:
    flags: list[int] = []
    monkeypatch.setattr(os, "preadv", raising(errno.EOPNOTSUPP, flags))
    assert read_hot(records.region(10, 5)) == bytes(range(10, 15))
    assert flags == [os.RWF_NOWAIT, 0]
    assert is_in_memory(records.fileno(), 0, 200)


def test_an_error_of_the_disk_is_one(records: FileRecords, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "preadv", raising(errno.EIO, []))
    with pytest.raises(OSError, match="Input/output"):
        read_hot(records.region(10, 5))
    with pytest.raises(OSError, match="Input/output"):
        is_in_memory(records.fileno(), 0, 200)
