"""A segment is split at start-up, and the process dies at every change of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.disks.faulty_disk import CrashError, FaultyFileSystem, crash
from tests.support.disks.logs import Disk
from tests.support.disks.overflowed import OFFSETS, OVERRIDES, PARTS, bases_of, offsets_in, write_segment


def test_next_start_has_every_record_once(tmp_path: Path) -> None:
    write_segment(tmp_path / "counting", 0, OFFSETS)
    counting = FaultyFileSystem()
    Disk(tmp_path / "counting", fs=counting).log(OVERRIDES)
    assert counting.count > 30
    for point in range(1, counting.count + 1):
        path = tmp_path / str(point)
        directory = write_segment(path, 0, OFFSETS)
        with pytest.raises(CrashError):
            Disk(path, fs=FaultyFileSystem(point, crash)).log(OVERRIDES)
        log = Disk(path).log(OVERRIDES)
        assert (offsets_in(log), bases_of(directory)) == (list(OFFSETS), PARTS), point
