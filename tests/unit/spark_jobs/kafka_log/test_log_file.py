from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from odradek.protocol.records.batch import assign_prefix
from odradek.protocol.records.legacy import build_messages
from odradek.protocol.records.record import Record
from odradek.storage.segment.offset_index import ENTRY
from spark_jobs.kafka_log import log_file
from spark_jobs.kafka_log.bad_batches import BadBatches
from spark_jobs.kafka_log.errors import CorruptLogFileError
from spark_jobs.kafka_log.log_file import LogFile
from spark_jobs.kafka_log.segments import Segment
from tests.support.disks.logs import NOW, batch

NUMBER = 40


def contents(number: int = NUMBER, size: int = 50) -> list[bytes]:
    return [bytes(batch(b"v" * size, base_offset=offset)) for offset in range(number)]


@contextmanager
def opened(
    tmp_path: Path, content: bytes, *, permissive: bool = True, max_bytes: int = 10**8, index: bytes = b""
) -> Iterator[tuple[LogFile, BadBatches]]:
    path = tmp_path / f"{0:020d}.log"
    path.write_bytes(content)
    if index:
        (tmp_path / f"{0:020d}.index").write_bytes(index)
    bad = BadBatches(permissive)
    with LogFile(Segment(0, str(path)), bad, max_bytes) as file:
        yield file, bad


def offsets(file: LogFile, position: int = 0) -> list[int]:
    return [found.batch.base_offset for found in file.batches(position)]


@pytest.mark.parametrize("chunk_bytes", [17, 100, 130, 200, 1000, 10**6])
def test_chunks_of_any_size_have_all_batches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk_bytes: int) -> None:
    monkeypatch.setattr(log_file, "CHUNK_BYTES", chunk_bytes)
    parts = [*contents(10), bytes(batch(b"x" * 5000, base_offset=10)), bytes(batch(b"y", base_offset=11))]
    with opened(tmp_path, b"".join(parts), permissive=False) as (file, _):
        found = [(each.position, each.chunk[each.start : each.end]) for each in file.batches()]
        assert [content for _, content in found] == parts
        assert [position for position, _ in found] == [sum(map(len, parts[:index])) for index in range(len(parts))]
        assert file.torn_at is None


def test_a_torn_batch_at_the_end_is_left_out_and_noted(tmp_path: Path) -> None:
    parts = contents(3)
    for cut in (8, 16, 17, 60, len(parts[2]) - 1):
        with opened(tmp_path, parts[0] + parts[1] + parts[2][:cut], permissive=False) as (file, _):
            assert offsets(file) == [0, 1]
            assert file.torn_at == len(parts[0]) * 2
            assert [header.base_offset for _, header in file.headers()] == [0, 1]


@pytest.mark.parametrize("zeros", [5, 17, 10_000, 3 * 1024 * 1024])
def test_blocks_that_are_allocated_in_front_of_the_next_batches_are_the_end(tmp_path: Path, zeros: int) -> None:
    """log.preallocate: the file has its final size from the beginning."""
    parts = contents(3)
    with opened(tmp_path, b"".join(parts) + bytes(zeros), permissive=False) as (file, _):
        assert offsets(file) == [0, 1, 2]
        assert [header.base_offset for _, header in file.headers()] == [0, 1, 2]
        assert file.torn_at is None


def damage(parts: list[bytes], number: int, position: int, content: bytes) -> bytes:
    changed = bytearray(parts[number])
    changed[position : position + len(content)] = content
    return b"".join([*parts[:number], bytes(changed), *parts[number + 1 :]])


def index_of(parts: list[bytes], *numbers: int) -> bytes:
    return b"".join(ENTRY.pack(number, sum(map(len, parts[:number]))) for number in numbers)


WRONG_FRAMES = [
    (8, b"\x00\x00\x00\x05"),
    (8, b"\xff\xff\xff\xff"),
    (16, b"\x07"),
    (0, b"\xff" * 8),
    (8, b"\x7f\x00\x00\x00"),
]


@pytest.mark.parametrize(("position", "content"), WRONG_FRAMES)
def test_behind_bytes_that_are_no_batch_the_index_shows_the_next(tmp_path: Path, position: int, content: bytes) -> None:
    parts = contents()
    wrong = damage(parts, 7, position, content)
    with opened(tmp_path, wrong, index=index_of(parts, 4, 12, 20)) as (file, bad):
        assert offsets(file) == [*range(7), *range(12, NUMBER)]
        assert bad.count == 1
        assert [header.base_offset for _, header in file.headers()] == [*range(7), *range(12, NUMBER)]
    with (
        opened(tmp_path, wrong, permissive=False) as (file, _),
        pytest.raises(CorruptLogFileError, match="byte 833 cannot"),
    ):
        offsets(file)


@pytest.mark.parametrize(("position", "content"), WRONG_FRAMES[:4])
def test_behind_bytes_that_are_no_batch_nothing_is_read_without_an_index(
    tmp_path: Path, position: int, content: bytes
) -> None:
    with opened(tmp_path, damage(contents(), 7, position, content)) as (file, bad):
        assert offsets(file) == [*range(7)]
        assert bad.count == 1


def test_offsets_that_go_back_are_no_batches_of_this_log(tmp_path: Path) -> None:
    parts = contents(3)
    refused = pytest.raises(CorruptLogFileError, match="its offset 1 does not follow 2")
    with opened(tmp_path, parts[0] + parts[2] + parts[1], permissive=False) as (file, _), refused:
        offsets(file)


def test_a_batch_above_the_limit_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_file, "CHUNK_BYTES", 200)
    large = bytes(batch(b"x" * 5000, base_offset=0))
    with opened(tmp_path, large, permissive=False, max_bytes=len(large)) as (file, _):
        assert offsets(file) == [0]
    refused = pytest.raises(CorruptLogFileError, match=f"{len(large)} bytes, more than maxBatchBytes={len(large) - 1}")
    with opened(tmp_path, large, permissive=False, max_bytes=len(large) - 1) as (file, _), refused:
        offsets(file)


def test_positions_come_from_the_index_if_a_batch_is_there(tmp_path: Path) -> None:
    parts = contents()
    size = len(parts[0])
    with opened(tmp_path, b"".join(parts), index=index_of(parts, 10, 20) + bytes(800)) as (file, _):
        assert [file.position_of(offset) for offset in (0, 9, 10, 19, 20, 39)] == [
            0,
            0,
            *[10 * size] * 2,
            *[20 * size] * 2,
        ]
        assert file.last_indexed_position() == 20 * size
    with opened(tmp_path, b"".join(parts), index=ENTRY.pack(10, 10 * size + 3)) as (file, _):
        assert file.position_of(15) == 0, "no batch begins there"
        assert file.last_indexed_position() == 0
    with opened(tmp_path, b"".join(parts), index=ENTRY.pack(10, 30 * size)) as (file, _):
        assert file.position_of(15) == 0, "that batch begins behind the offset"


def test_headers_of_all_formats(tmp_path: Path) -> None:
    old = build_messages([Record(0, NOW, b"k", b"v" * 9000), Record(1, NOW, None, b"")], 1)
    new = [bytes(batch(b"v" * 6000, base_offset=2)), bytes(batch(b"v", base_offset=3))]
    with opened(tmp_path, old + b"".join(new), permissive=False) as (file, _):
        assert [(header.magic, header.last_offset) for _, header in file.headers()] == [(1, 0), (1, 1), (2, 2), (2, 3)]
        positions = [position for position, _ in file.headers()]
        assert [each.position for each in file.batches()] == positions
        assert [header.last_offset for _, header in file.headers(positions[2])] == [2, 3]
        assert [header.last_offset for _, header in file.headers(0, positions[2])] == [0, 1]


def test_a_file_that_got_another_name_is_still_read(tmp_path: Path) -> None:
    with opened(tmp_path, b"".join(contents(3))) as (file, _):
        assert not file.is_replaced()
        path = Path(file.segment.path)
        path.rename(path.with_suffix(".log.deleted"))
        assert file.is_replaced()
        path.write_bytes(b"")
        assert file.is_replaced()
        assert offsets(file) == [0, 1, 2]


def test_a_leader_epoch_and_offset_outside_the_checksum_are_taken_as_they_are(tmp_path: Path) -> None:
    changed = bytearray(contents(1)[0])
    assign_prefix(changed, 5, 9)
    with opened(tmp_path, bytes(changed), permissive=False) as (file, _):
        (found,) = file.batches()
        assert (found.batch.base_offset, found.batch.partition_leader_epoch) == (5, 9)
