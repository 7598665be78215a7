"""The scan of one segment: its end, and the rebuilt indexes and state."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.protocol.records.legacy import build_messages
from odradek.protocol.records.record import Record
from odradek.storage.append_info import SegmentOffsetOverflowError
from odradek.storage.config.log_config import LogConfig
from odradek.storage.log.leader_epochs import LeaderEpochs
from odradek.storage.offsets import TimestampOffset
from odradek.storage.producers.producer_state_manager import ProducerStateManager
from odradek.storage.recovery.segment_recovery import SegmentScan
from odradek.storage.segment.file_records import SEQUENTIAL_READ_BYTES
from odradek.storage.segment.log_segment import LogSegment
from odradek.storage.segment.mapped_index import InvalidOffsetError
from tests.support.disks.logs import NOW, TP, Disk, batch

BASE = 10


class Scanned:
    """A segment of these bytes, after a scan."""

    def __init__(self, path: Path, content: bytes, *, interval: int = 0, ends_at_overflow: bool = False) -> None:
        disk = Disk(path)
        config = LogConfig.from_props({}, {"index.interval.bytes": str(interval)})
        (path / f"{BASE:020d}.log").write_bytes(content)
        self.segment = LogSegment.open(str(path), BASE, config, disk.environment)
        self.epochs = LeaderEpochs()
        self.producers = ProducerStateManager(TP, str(path), disk.environment.fs)
        self.bytes: list[int] = []
        self.segment.begin_rebuild()
        self.scan = SegmentScan(self.segment)
        self.scan.run(self.producers, self.epochs, self.bytes.append, ends_at_overflow=ends_at_overflow)

    @property
    def index(self) -> list[tuple[int, int]]:
        return [tuple(self.segment.offset_index.entry(slot)) for slot in range(self.segment.offset_index.entries)]


def batches_of(count: int, **kwargs: int) -> list[bytes]:
    return [
        bytes(batch(b"v", base_offset=BASE + number, timestamp=NOW + number, epoch=number // 2, **kwargs))
        for number in range(count)
    ]


def test_everything_good_is_indexed(tmp_path: Path) -> None:
    parts = batches_of(4)
    size = len(parts[0])
    found = Scanned(tmp_path, b"".join(parts))
    assert found.scan.valid_bytes == 4 * size
    assert found.index == [(11, size), (12, 2 * size), (13, 3 * size)]
    assert found.scan.largest == TimestampOffset(NOW + 3, 13)
    assert [tuple(entry) for entry in found.epochs.entries] == [(0, 10), (1, 12)]
    assert found.producers.map_end_offset == 14
    assert sum(found.bytes) == 4 * size


@pytest.mark.parametrize("interval", [0, 69, 70, 140, 150, 4096])
def test_index_has_an_entry_for_more_than_the_interval(tmp_path: Path, interval: int) -> None:
    parts = batches_of(9)
    positions, last = [], 0
    for number in range(9):
        if number * len(parts[0]) - last > interval:
            last = number * len(parts[0])
            positions.append((BASE + number, last))
    assert Scanned(tmp_path, b"".join(parts), interval=interval).index == positions


@pytest.mark.parametrize("cut", [1, 17, 18, 40])
def test_torn_batch_ends_the_scan_silently(tmp_path: Path, cut: int, caplog: pytest.LogCaptureFixture) -> None:
    parts = batches_of(2)
    assert Scanned(tmp_path, parts[0] + parts[1][:cut]).scan.valid_bytes == len(parts[0])
    assert not caplog.text


def zero_length(data: bytearray) -> None:
    data[8:12] = bytes(4)


def negative_length(data: bytearray) -> None:
    data[8] = 0xFF


def unknown_magic(data: bytearray) -> None:
    data[16] = 3


def shorter_than_a_header(data: bytearray) -> None:
    data[8:12] = (20).to_bytes(4, "big")


def flipped_bit(data: bytearray) -> None:
    data[-1] ^= 1


@pytest.mark.parametrize("damage", [zero_length, negative_length, unknown_magic, shorter_than_a_header, flipped_bit])
def test_bad_batch_ends_the_scan_and_is_logged(
    tmp_path: Path, damage: Callable[[bytearray], None], caplog: pytest.LogCaptureFixture
) -> None:
    parts = batches_of(3)
    bad = bytearray(parts[1])
    damage(bad)
    found = Scanned(tmp_path, parts[0] + bytes(bad) + parts[2])
    assert found.scan.valid_bytes == len(parts[0])
    assert found.producers.map_end_offset == BASE + 1
    assert f"at byte offset {len(parts[0])}" in caplog.text


def test_batches_across_reads_and_larger_than_a_read(tmp_path: Path) -> None:
    large = b"x" * (SEQUENTIAL_READ_BYTES // 2 - 1000)
    parts = [bytes(batch(large, base_offset=BASE + number)) for number in range(4)]
    parts.append(bytes(batch(large * 5, base_offset=BASE + 4)))
    parts.append(bytes(batch(b"v", base_offset=BASE + 5)))
    found = Scanned(tmp_path, b"".join(parts))
    assert found.scan.valid_bytes == sum(map(len, parts))
    assert [offset for offset, _ in found.index] == [11, 12, 13, 14, 15]


def test_falling_offsets_raise(tmp_path: Path) -> None:
    parts = batches_of(3)
    with pytest.raises(InvalidOffsetError):
        Scanned(tmp_path, parts[0] + parts[2] + parts[1])


@pytest.mark.parametrize("offset", [BASE - 1, BASE + 2**31])
def test_offset_out_of_reach_raises_or_ends_the_scan(tmp_path: Path, offset: int) -> None:
    parts = batches_of(2)
    content = parts[0] + bytes(batch(b"v", base_offset=offset)) + parts[1]
    with pytest.raises(SegmentOffsetOverflowError):
        Scanned(tmp_path, content)
    assert Scanned(tmp_path, content, ends_at_overflow=True).scan.valid_bytes == len(parts[0])


def test_last_offset_within_reach_is_taken(tmp_path: Path) -> None:
    far = bytes(batch(b"v", base_offset=BASE + 2**31 - 1))
    assert Scanned(tmp_path, far).scan.valid_bytes == len(far)


def test_producers_are_replayed(tmp_path: Path) -> None:
    parts = [
        bytes(batch(b"v", base_offset=BASE + number, producer_id=7, producer_epoch=0, base_sequence=number))
        for number in range(3)
    ]
    entry = Scanned(tmp_path, b"".join(parts)).producers.last_entry(7)
    assert entry is not None
    assert (entry.last_seq, entry.last_data_offset) == (2, 12)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", [0, 1])
def test_old_formats_are_scanned_and_have_no_epoch_or_producer(tmp_path: Path, magic: int, codec: int) -> None:
    timestamp = NOW if magic else -1
    sets = [
        bytes(build_messages([Record(BASE + n, timestamp, b"k", b"v", ())], magic=magic, compression_type=codec))
        for n in range(3)
    ]
    bad = bytearray(sets[2])
    bad[-1] ^= 1
    found = Scanned(tmp_path, b"".join(sets[:2]) + bytes(bad))
    assert found.scan.valid_bytes == len(sets[0]) + len(sets[1])
    assert found.index == [(BASE + 1, len(sets[0]))]
    assert found.scan.largest == TimestampOffset(timestamp, BASE)
    assert (found.epochs.is_empty, found.producers.map_end_offset) == (True, 0)
