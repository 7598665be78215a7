"""The files of a new segment."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.storage.config.log_config import LogConfig
from odradek.storage.disk.file_system import OsFileSystem
from odradek.storage.segment.new_segment_files import create_segment_files
from tests.support.disks.faulty_disk import FaultyFileSystem, io_error
from tests.support.disks.open_descriptors import open_below

NAMES = ["00000000000000000007.index", "00000000000000000007.log", "00000000000000000007.timeindex"]


@pytest.mark.parametrize("preallocate", [True, False])
def test_the_files_are_those_of_kafka(tmp_path: Path, preallocate: bool) -> None:
    config = LogConfig.from_props({}, {"preallocate": str(preallocate).lower(), "segment.bytes": "8192"})
    fd = create_segment_files(str(tmp_path), 7, config, OsFileSystem())
    assert sorted(os.listdir(tmp_path)) == NAMES
    assert os.fstat(fd).st_size == (8192 if preallocate else 0)
    assert os.fstat(fd).st_blocks < 8192 // 512, "a preallocated file is sparse"
    os.write(fd, b"x")
    os.close(fd)
    assert (tmp_path / NAMES[1]).read_bytes()[:1] == b"x"


@pytest.mark.parametrize("fails_at", [1, 2, 3])
def test_a_failure_leaves_no_descriptor(tmp_path: Path, fails_at: int) -> None:
    fs = FaultyFileSystem(fails_at, io_error, kinds=frozenset({"create"}))
    with pytest.raises(OSError, match="Input/output error"):
        create_segment_files(str(tmp_path), 7, LogConfig.from_props({}, {}), fs)
    assert open_below(tmp_path) == []
