"""Interrupted compactions and splits: the start keeps the old segments or the new ones, never both."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.storage.config.log_config import LogConfig
from odradek.storage.recovery.interrupted_swaps import finish_interrupted_swaps, segment_bases
from tests.support.disks.faulty_disk import CrashError, FaultyFileSystem, crash
from tests.support.disks.logs import Disk, batch


def make(path: Path, **files: list[int]) -> Path:
    """Log files named by keyword (`_` for `.`, a leading `f` for nothing), each with records at these offsets."""
    path.mkdir(parents=True, exist_ok=True)
    for name, offsets in files.items():
        base, _, suffix = name[1:].partition("_")
        content = b"".join(bytes(batch(b"v", base_offset=offset)) for offset in offsets)
        (path / f"{int(base):020d}.{suffix.replace('_', '.')}").write_bytes(content)
    return path


def finish(path: Path) -> dict[str, int]:
    """The files afterwards: names without leading zeros, and sizes in batches."""
    finish_interrupted_swaps(str(path), LogConfig.from_props({}, {}), Disk(path).environment)
    size = len(batch(b"v"))
    return {f"{int(file.name[:20])}{file.name[20:]}": file.stat().st_size // size for file in sorted(path.iterdir())}


def test_nothing_to_do(tmp_path: Path) -> None:
    assert finish(make(tmp_path, f0_log=[0, 1], f2_log=[2])) == {"0.log": 2, "2.log": 1}


def test_deleted_files_go(tmp_path: Path) -> None:
    assert finish(make(tmp_path, f0_log_deleted=[0], f2_log=[2], f0_snapshot_deleted=[])) == {"2.log": 1}


def test_incomplete_output_is_deleted(tmp_path: Path) -> None:
    assert finish(make(tmp_path, f0_log=[0, 1], f0_log_cleaned=[1], f0_index_cleaned=[])) == {"0.log": 2}


def test_complete_output_takes_the_place_of_what_it_replaces(tmp_path: Path) -> None:
    """The snapshot in its range is removed too, as in Apache; the segment at its end stays."""
    make(tmp_path, f0_log=[0, 1], f2_log=[2, 3], f4_log=[4], f2_snapshot=[], f0_log_swap=[1, 3], f0_index_swap=[])
    assert finish(tmp_path) == {"0.index": 0, "0.log": 2, "4.log": 1}


def test_swap_at_or_above_a_cleaned_file_is_not_complete(tmp_path: Path) -> None:
    make(tmp_path, f0_log=[0, 1, 2], f0_log_cleaned=[0], f1_log_swap=[1], f2_log_swap=[2])
    assert finish(tmp_path) == {"0.log": 3}


def test_swap_below_a_cleaned_file_is_complete(tmp_path: Path) -> None:
    make(tmp_path, f0_log=[0, 1], f2_log=[2], f0_log_swap=[1], f2_log_cleaned=[2])
    assert finish(tmp_path) == {"0.log": 1, "2.log": 1}


def test_source_that_begins_below_its_first_part_is_replaced_too(tmp_path: Path) -> None:
    """A split names its parts by their first batch. Apache keeps the source, so that the log has the records twice."""
    make(tmp_path, f0_log=[5, 6, 7], f5_log_swap=[5, 6], f7_log_swap=[7])
    assert finish(tmp_path) == {"5.log": 2, "7.log": 1}


def test_segment_that_ends_below_the_swap_stays(tmp_path: Path) -> None:
    make(tmp_path, f0_log=[0, 1], f5_log=[5, 6], f5_log_swap=[6])
    assert finish(tmp_path) == {"0.log": 2, "5.log": 1}


def test_unreadable_segment_below_the_swap_stays_for_recovery(tmp_path: Path) -> None:
    make(tmp_path, f0_log=[0], f5_log_swap=[6])
    (tmp_path / "00000000000000000000.log").write_bytes(b"\0" * 100)
    assert finish(tmp_path) == {"0.log": 1, "5.log": 1}


def test_indexes_follow_a_log_file_that_was_renamed_already(tmp_path: Path) -> None:
    make(tmp_path, f0_log=[1, 3], f0_index_swap=[], f4_log=[4])
    assert finish(tmp_path) == {"0.index": 0, "0.log": 2, "4.log": 1}


def test_files_without_an_offset_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "partition.metadata").write_text("version: 0\n")
    (tmp_path / "leader-epoch-checkpoint.swap").touch()
    make(tmp_path, f0_log=[0], f0_log_swap=[0])
    finish_interrupted_swaps(str(tmp_path), LogConfig.from_props({}, {}), Disk(tmp_path).environment)
    assert (tmp_path / "partition.metadata").exists()


def test_dying_in_between_changes_nothing_of_the_result(tmp_path: Path) -> None:
    files = {"f0_log": [0, 1], "f2_log": [2, 3], "f4_log": [4], "f0_log_swap": [1, 3], "f0_index_swap": []}
    config = LogConfig.from_props({}, {})
    counting = FaultyFileSystem()
    finish_interrupted_swaps(str(make(tmp_path / "0", **files)), config, Disk(tmp_path / "0", fs=counting).environment)
    assert counting.count >= 5
    for point in range(1, counting.count + 1):
        path = make(tmp_path / str(point), **files)
        with pytest.raises(CrashError):
            finish_interrupted_swaps(str(path), config, Disk(path, fs=FaultyFileSystem(point, crash)).environment)
        assert finish(path) == {"0.index": 0, "0.log": 2, "4.log": 1}


def test_segment_bases(tmp_path: Path) -> None:
    make(tmp_path, f7_log=[7], f0_log=[0], f9_log_swap=[9], f9_index=[])
    assert segment_bases(str(tmp_path)) == [0, 7]
