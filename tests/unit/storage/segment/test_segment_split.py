"""Splitting segments with offsets too far apart (KAFKA-6264), as old brokers left them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from odradek.storage.config.log_config import LogConfig
from odradek.storage.segment.log_segment import LogSegment
from odradek.storage.segment.segment_split import SplitJob, can_be_split, split_in_worker, split_segment
from odradek.storage.segment.transaction_index import AbortedTxn
from tests.support.disks.faulty_disk import SYNCS, FaultyFileSystem, io_error
from tests.support.disks.logs import Disk, append
from tests.support.disks.open_descriptors import open_below
from tests.support.disks.overflowed import FAR, NOW, OFFSETS, OVERRIDES, PARTS, bases_of, offsets_in, write_segment

CONFIG = LogConfig.from_props({}, OVERRIDES)


def test_parts_hold_the_batches_as_they_are(tmp_path: Path) -> None:
    directory = write_segment(tmp_path, 0, OFFSETS)
    source = directory / "00000000000000000000.log"
    os.utime(source, ns=(0, 12_345_000_000))
    assert split_segment(str(directory), 0, CONFIG, Disk(tmp_path).environment) == PARTS
    parts = [directory / f"{base:020d}.log.cleaned" for base in PARTS]
    assert b"".join(part.read_bytes() for part in parts) == source.read_bytes()
    assert [part.stat().st_mtime_ns for part in parts] == [12_345_000_000] * 3
    for base in PARTS:
        assert (directory / f"{base:020d}.index.cleaned").stat().st_size % 8 == 0
    first = (directory / f"{5:020d}.timeindex.cleaned").read_bytes()
    assert len(first) == 2 * 12, "the first batch has no entry"
    assert int.from_bytes(first[-4:], "big") == FAR + 4 - 5


def test_aborted_transactions_go_with_their_markers(tmp_path: Path) -> None:
    directory = write_segment(tmp_path, 0, OFFSETS)
    disk = Disk(tmp_path)
    source = LogSegment.open(str(directory), 0, CONFIG, disk.environment)
    transactions = [AbortedTxn(1, 5, 7, 8), AbortedTxn(2, 5, FAR + 5, FAR + 6)]
    for aborted in transactions:
        source.txn_index.append(aborted)
    split_segment(str(directory), 0, CONFIG, disk.environment)
    found = [
        list(LogSegment.open(str(directory), base, CONFIG, disk.environment, suffix=".cleaned").txn_index)
        for base in PARTS
    ]
    assert found == [[transactions[0]], [transactions[1]], []]


def test_worker_answers_the_bases(tmp_path: Path) -> None:
    directory = write_segment(tmp_path, 0, OFFSETS)
    job = SplitJob(directory=str(directory), base_offset=0, config=CONFIG)
    assert split_in_worker(job, lambda _: None) == PARTS


def test_failed_split_leaves_nothing(tmp_path: Path) -> None:
    directory = write_segment(tmp_path, 0, OFFSETS)
    for point in (1, 5, 12):
        fs = FaultyFileSystem(point, lambda: OSError(28, "No space left on device"), for_good=False)
        with pytest.raises(OSError, match="No space"):
            split_segment(str(directory), 0, CONFIG, Disk(tmp_path, fs=fs).environment)
        assert os.listdir(directory) == ["00000000000000000000.log"]


def test_split_that_cannot_be_synced_leaves_no_descriptor(tmp_path: Path) -> None:
    directory = write_segment(tmp_path, 0, OFFSETS)
    fs = FaultyFileSystem(1, io_error, kinds=SYNCS)
    with pytest.raises(OSError, match="Input/output error"):
        split_segment(str(directory), 0, CONFIG, Disk(tmp_path, fs=fs).environment)
    assert open_below(directory) == []


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        ((5, FAR - 1), False),
        ((5, FAR), True),
        ((5, FAR + 10, 6), False),
        ((5, 5, FAR), False),
        ((), False),
    ],
    ids=["fits", "one too far", "falls again", "twice the same", "empty"],
)
def test_only_sound_segments_that_reach_too_far_can_be_split(
    tmp_path: Path, offsets: tuple[int, ...], expected: bool
) -> None:
    directory = write_segment(tmp_path, 0, offsets)
    assert can_be_split(LogSegment.open(str(directory), 0, CONFIG, Disk(tmp_path).environment)) is expected


@pytest.mark.parametrize("base_offset", [0, 5], ids=["name below the first batch", "name of the first batch"])
def test_recovery_splits_and_loads_again(tmp_path: Path, base_offset: int) -> None:
    directory = write_segment(tmp_path, base_offset, OFFSETS)
    log = Disk(tmp_path).log(OVERRIDES)
    assert (log.segments.base_offsets, bases_of(directory)) == (PARTS, PARTS)
    assert offsets_in(log) == list(OFFSETS)
    assert append(log, b"more") == OFFSETS[-1] + 1
    log.close()
    assert offsets_in(Disk(tmp_path).log(OVERRIDES, clean=True)) == [*OFFSETS, OFFSETS[-1] + 1]


def test_missing_index_after_a_clean_stop_splits_as_well(tmp_path: Path) -> None:
    directory = write_segment(tmp_path, 0, OFFSETS)
    log = Disk(tmp_path).log(OVERRIDES, clean=True)
    assert (offsets_in(log), bases_of(directory)) == (list(OFFSETS), PARTS)
    assert log.fetch_offset_by_timestamp(NOW + OFFSETS[-1] % 1000) is not None


def test_torn_tail_of_an_overflowed_segment_is_truncated_and_later_segments_removed(tmp_path: Path) -> None:
    directory = write_segment(tmp_path, 0, OFFSETS, tail=b"torn")
    write_segment(tmp_path, 3 * FAR, (3 * FAR,))
    for base in (0, 3 * FAR):
        (directory / f"{base:020d}.index").touch()
    log = Disk(tmp_path).log(OVERRIDES)
    assert (offsets_in(log), bases_of(directory)) == (list(OFFSETS), PARTS)


def test_wrong_offset_in_one_batch_cuts_the_log_there(tmp_path: Path) -> None:
    """No checksum covers the base offset. Apache does not start with such a segment."""
    directory = write_segment(tmp_path, 0, (1, 2, FAR + 3, 4))
    log = Disk(tmp_path).log(OVERRIDES)
    assert (offsets_in(log), bases_of(directory)) == ([1, 2], [0])
