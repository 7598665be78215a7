from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.storage.segment.read_only_files import open_offset_index, open_records, open_time_index
from tests.support.disks.logs import NOW, Disk, append
from tests.support.disks.open_descriptors import open_below


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    log = Disk(tmp_path).log({"index.interval.bytes": "1"})
    for n in range(4):
        append(log, b"x", timestamp=NOW + n)
    log.close()
    return Path(log.dir)


def test_a_log_and_its_indexes_read_as_in_a_broker(directory: Path) -> None:
    stem = f"{directory}/{0:020d}"
    with open_records(stem + ".log") as records:
        assert [batch.base_offset for _, batch in records.batches()] == [0, 1, 2, 3]
    offsets, times = open_offset_index(stem + ".index", 0), open_time_index(stem + ".timeindex", 0)
    assert [offsets.entry(slot).offset for slot in range(offsets.entries)] == [1, 2, 3]
    assert times.last_entry == (NOW + 3, 3)
    assert offsets.lookup(2).offset == 2


def test_an_index_can_be_cut_while_it_is_read(directory: Path) -> None:
    path = directory / f"{0:020d}.index"
    index = open_offset_index(str(path), 0)
    assert index.entry(0).offset == 1
    os.truncate(path, 0)
    assert index.entry(2).offset == 3, "a map of the file would be SIGBUS"


def test_nothing_is_written(directory: Path) -> None:
    before = {path: path.read_bytes() for path in directory.iterdir()}
    index = open_offset_index(f"{directory}/{0:020d}.index", 0)
    index.rewrite()
    with pytest.raises(OSError, match="Invalid argument"):
        index.trim()
    with pytest.raises(OSError, match="Bad file descriptor"), open_records(f"{directory}/{0:020d}.log") as records:
        records.append([b"x"])
    assert {path: path.read_bytes() for path in directory.iterdir()} == before


def test_no_descriptor_is_kept(directory: Path) -> None:
    with open_records(f"{directory}/{0:020d}.log") as records:
        assert records.read(0, 8) == bytes(8)
    index = open_offset_index(f"{directory}/{0:020d}.index", 0)
    assert index.entry(0).offset == 1
    assert open_below(directory) == []


@pytest.mark.parametrize("suffix", [".log", ".index", ".timeindex"])
def test_a_missing_file_is_an_error_and_stays_missing(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"{0:020d}{suffix}"
    with pytest.raises(FileNotFoundError):
        open_any(str(path))
    assert not path.exists()


def open_any(path: str) -> None:
    if path.endswith(".index"):
        open_offset_index(path, 0)
    elif path.endswith(".timeindex"):
        open_time_index(path, 0)
    else:
        with open_records(path):
            pass
