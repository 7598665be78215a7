"""Segments of the old message formats, as upgraded brokers have them."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.records.batch import batches
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.convert import down_convert
from odradek.protocol.records.legacy import build_messages
from odradek.protocol.records.record import Record
from odradek.storage.log.unified_log import UnifiedLog
from odradek.storage.segment.fetch_data import FetchIsolation
from tests.support.disks.logs import NOW, Disk, append, read_all, read_bytes, values_of
from tests.support.disks.overflowed import FAR

FORMATS = [
    pytest.param(magic, codec, id=f"magic {magic}, {codec.name.lower()}")
    for magic in (0, 1)
    for codec in (CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4)
]


def message_set(magic: int, codec: int, first: int, count: int = 3) -> bytes:
    records = [
        Record(offset, NOW + offset if magic else -1, b"k", b"%d" % offset) for offset in range(first, first + count)
    ]
    return build_messages(records, magic, base_offset=first, compression_type=codec)


def make(disk: Disk, magic: int, codec: int, sets: int = 4, tail: bytes = b"") -> UnifiedLog:
    """A log of message sets of three messages, after an unclean stop."""
    path = disk.path / "topic-0"
    path.mkdir(parents=True)
    content = b"".join(message_set(magic, codec, 3 * number) for number in range(sets))
    (path / f"{0:020d}.log").write_bytes(content + tail)
    return disk.log({"index.interval.bytes": "0"})


def numbers(log: UnifiedLog) -> list[int]:
    return [int(value or b"") for value in values_of(read_all(log))]


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_read_recovered_and_appended_to(tmp_path: Path, magic: int, codec: int) -> None:
    torn = message_set(magic, codec, 12, count=1)[:-1]
    log = make(Disk(tmp_path), magic, codec, tail=torn)
    assert numbers(log) == list(range(12))
    assert log.latest_epoch == -1
    assert append(log, b"12", epoch=4) == 12
    assert numbers(log) == list(range(13))
    assert [tuple(entry) for entry in log.state.leader_epochs.entries] == [(4, 12)]
    log.close()
    assert numbers(Disk(tmp_path).log(clean=True)) == list(range(13))


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_truncated_at_the_set_that_holds_the_offset(tmp_path: Path, magic: int, codec: int) -> None:
    log = make(Disk(tmp_path), magic, codec)
    log.truncate_to(7)
    kept = 7 if codec == CompressionType.NONE else 6
    assert (log.log_end_offset, len(read_all(log))) == (7, kept)


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_searched_by_time(tmp_path: Path, magic: int, codec: int) -> None:
    log = make(Disk(tmp_path), magic, codec)
    found = log.fetch_offset_by_timestamp(NOW + 7)
    assert found is None if magic == 0 else found is not None and (found.timestamp, found.offset) == (NOW + 7, 7)


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
def test_follower_that_appends_them_forgets_the_epochs(tmp_path: Path, magic: int, codec: int) -> None:
    log = Disk(tmp_path).log()
    append(log, b"0", epoch=3)
    log.append_as_follower(memoryview(message_set(magic, codec, 1)))
    assert (log.log_end_offset, log.state.leader_epochs.is_empty) == (4, True)


@pytest.mark.parametrize(("magic", "codec"), FORMATS)
@pytest.mark.parametrize("wanted", [0, 1])
def test_converted_down_only_where_they_are_too_new(tmp_path: Path, magic: int, codec: int, wanted: int) -> None:
    log = make(Disk(tmp_path), magic, codec)
    stored = read_bytes(log.read(0, 1 << 20, FetchIsolation.LOG_END, True))
    converted = down_convert(memoryview(stored), magic=wanted, first_offset=0).records
    if magic <= wanted:
        assert converted == stored
    found = [record for each in batches(memoryview(converted)) for record in each.records()]
    assert [record.offset for record in found] == list(range(12))
    assert {each.magic for each in batches(memoryview(converted))} == {min(magic, wanted)}


@pytest.mark.parametrize("codec", [CompressionType.NONE, CompressionType.GZIP])
def test_split_names_a_part_by_the_first_record_of_a_wrapper(tmp_path: Path, codec: int) -> None:
    disk = Disk(tmp_path)
    path = tmp_path / "topic-0"
    path.mkdir()
    content = message_set(1, codec, 0) + message_set(1, codec, FAR + 5)
    (path / f"{0:020d}.log").write_bytes(content)
    log = disk.log({})
    assert log.segments.base_offsets == [0, FAR + 5]
    assert numbers(log) == [0, 1, 2, FAR + 5, FAR + 6, FAR + 7]
