"""Rows of generated logs, compared with what a consumer makes of what a broker sends from the same logs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.protocol.records.batch import batches
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.layout import CREATE_TIME, LOG_APPEND_TIME
from odradek.protocol.records.legacy import build_messages
from odradek.protocol.records.record import Record
from odradek.storage.segment.fetch_data import FetchIsolation
from spark_jobs.kafka_log.errors import CorruptLogFileError
from tests.support.disks.logs import NOW, Disk, append, batch, read_bytes
from tests.support.kafka_log import milliseconds, offsets, rows, write_high_watermark
from tests.support.wire.record_strategies import spaced_records

CODECS = range(5)
LATEST_MS = 2**63 // 1000 - 1


def consumed(path: Path) -> list[tuple[int, int, bytes | None, bytes | None]]:
    """What the other decoder reads from a segment."""
    return [
        (record.offset, record.timestamp, record.key, record.value)
        for each in batches(memoryview(path.read_bytes()))
        for record in each.records()
    ]


def partition(tmp_path: Path, content: bytes, base_offset: int = 0) -> Path:
    """A log directory whose one segment has these bytes, without indexes and checkpoints."""
    directory = tmp_path / "topic-0"
    directory.mkdir()
    path = directory / f"{base_offset:020d}.log"
    path.write_bytes(content)
    return path


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    samples=st.lists(st.tuples(spaced_records(), st.sampled_from(CODECS), st.booleans()), min_size=1, max_size=4),
    max_rows=st.sampled_from([1, 3, 10_000]),
    start=st.integers(0, 30),
)
def test_rows_are_the_records(
    tmp_path_factory: pytest.TempPathFactory,
    samples: list[tuple[tuple[int, list[Record]], int, bool]],
    max_rows: int,
    start: int,
) -> None:
    content, next_offset = bytearray(), 0
    for (base, records), codec, is_append_time in samples:
        moved = [record._replace(offset=record.offset - base + next_offset) for record in records]
        content += build_batch(
            moved,
            base_offset=next_offset,
            compression_type=codec,
            timestamp_type=LOG_APPEND_TIME if is_append_time else CREATE_TIME,
            log_append_time=NOW if is_append_time else -1,
        )
        next_offset = moved[-1].offset + 1
    path = partition(tmp_path_factory.mktemp("log"), bytes(content))
    found = rows(path.parent.parent, maxRowsPerBatch=max_rows, startingOffset=start, includeHeaders=True)
    expected = [
        (record, each.timestamp_type)
        for each in batches(memoryview(content))
        for record in each.records()
        if record.offset >= start
    ]
    assert [
        (row["offset"], row["key"], row["value"], [(h["key"], h["value"]) for h in row["headers"] or ()])
        for row in found
    ] == [(record.offset, record.key, record.value, list(record.headers)) for record, _ in expected]
    for row, (record, timestamp_type) in zip(found, expected, strict=True):
        assert row["timestampType"] == timestamp_type
        if record.timestamp > LATEST_MS:
            assert row["timestamp"] is None
        else:
            assert milliseconds(row) == record.timestamp


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", range(4))
def test_messages_of_the_old_formats(tmp_path: Path, magic: int, codec: int) -> None:
    records = [Record(number, NOW + number, b"k%d" % number or None, b"v" * number) for number in range(9)]
    records[3] = records[3]._replace(key=None, value=None)
    content = b"".join(
        build_messages(records[first : first + 3], magic, base_offset=first, compression_type=codec)
        for first in (0, 3, 6)
    )
    path = partition(tmp_path, content)
    found = rows(tmp_path)
    assert [(row["offset"], row["key"], row["value"]) for row in found] == [
        (offset, key, value) for offset, _, key, value in consumed(path)
    ]
    assert {row["timestampType"] for row in found} == {0 if magic else -1}
    assert {milliseconds(row) for row in found} == ({NOW + n for n in range(9)} if magic else {-1})
    assert {row["compression"] for row in found} == {("none", "gzip", "snappy", "lz4")[codec]}
    assert (found[4]["batchOffset"], found[4]["leaderEpoch"], found[4]["sequence"]) == (3 if codec else 4, -1, -1)
    assert offsets(tmp_path, startingOffset=4, endingOffset=7) == [4, 5, 6]
    overhead = 26 if magic == 0 else 34
    assert [row["recordSize"] for row in found][:3] == [overhead + 2, overhead + 3, overhead + 4]


def test_sequences_wrap_as_those_of_the_decoder(tmp_path: Path) -> None:
    content = build_batch(
        [Record(offset, NOW, None, b"") for offset in (0, 1, 2, 5)],
        producer_id=7,
        producer_epoch=0,
        base_sequence=2**31 - 2,
    )
    path = partition(tmp_path, bytes(content))
    expected = [record.sequence for each in batches(memoryview(path.read_bytes())) for record in each.records()]
    assert [row["sequence"] for row in rows(tmp_path)] == expected == [2**31 - 2, 2**31 - 1, 0, 3]


def test_rows_of_a_log_that_is_open_are_those_that_a_fetch_returns(tmp_path: Path) -> None:
    log = Disk(tmp_path).log({"segment.bytes": "400"})
    for number in range(30):
        append(log, b"value %d" % number, timestamp=NOW + number, compression=number % 5)
    log.update_high_watermark(27)
    write_high_watermark(tmp_path, 27)
    sent, offset = [], 0
    while offset < 27:
        for each in batches(memoryview(read_bytes(log.read(offset, 500, FetchIsolation.HIGH_WATERMARK, True)))):
            sent += [(record.offset, record.value) for record in each.records()]
            offset = each.next_offset
    found = rows(tmp_path)
    assert [(row["offset"], row["value"]) for row in found] == sent
    assert len({row["segment"] for row in found}) > 3


# -- bytes that are no records -----------------------------------------------


def three_batches() -> list[bytes]:
    return [
        bytes(batch(b"a", b"b", base_offset=0)),
        bytes(batch(b"c", base_offset=2)),
        bytes(batch(b"d", base_offset=3)),
    ]


def damaged(position: int) -> bytes:
    """Three batches; a byte of the second one differs."""
    first, second, third = three_batches()
    changed = bytearray(second)
    changed[position] ^= 1
    return first + bytes(changed) + third


def test_a_wrong_checksum_is_an_error(tmp_path: Path) -> None:
    path = partition(tmp_path, damaged(65))
    first = len(three_batches()[0])
    with pytest.raises(
        CorruptLogFileError, match=rf"{path}: the batch at byte {first} cannot be read: .*crc.*PERMISSIVE"
    ):
        rows(tmp_path)


def test_a_batch_with_a_wrong_checksum_is_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    partition(tmp_path, damaged(65))
    assert offsets(tmp_path, mode="PERMISSIVE") == [0, 1, 3]
    line = capsys.readouterr().err
    assert line.startswith("kafka_log: warning: 1 batch was left out; the first: ")
    assert line.count("\n") == 1


@pytest.mark.parametrize("length", [-1, 3])
def test_a_record_with_a_wrong_length_is_left_out_with_its_batch(tmp_path: Path, length: int) -> None:
    """The checksum is right: the producer has sent it so."""
    from odradek.protocol.codec.varint import write_varint
    from odradek.protocol.records.builder import assemble_batch

    wrong = assemble_batch(
        write_varint(length) + b"\x00\x00\x00\x01\x01\x00",
        record_count=1,
        base_offset=2,
        last_offset_delta=0,
        base_timestamp=NOW,
        max_timestamp=NOW,
        attributes=0,
    )
    first, _, third = three_batches()
    partition(tmp_path, first + bytes(wrong) + third)
    with pytest.raises(CorruptLogFileError, match="Invalid record size"):
        rows(tmp_path)
    assert offsets(tmp_path, mode="PERMISSIVE") == [0, 1, 3]


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_a_batch_that_grows_beyond_the_limit_is_not_opened(tmp_path: Path, codec: int) -> None:
    bomb = build_batch([Record(0, NOW, None, bytes(1_000_000))], compression_type=codec)
    partition(tmp_path, bytes(bomb))
    assert len(rows(tmp_path, maxDecompressedBytes=1_001_000)) == 1
    with pytest.raises(CorruptLogFileError, match="more than 1000000 bytes"):
        rows(tmp_path, maxDecompressedBytes=1_000_000)
    assert rows(tmp_path, maxDecompressedBytes=1_000_000, mode="PERMISSIVE") == []


def test_control_records_come_only_if_they_are_asked_for(tmp_path: Path) -> None:
    from odradek.protocol.records.control import ControlRecordType
    from tests.support.disks.logs import marker

    content = bytes(batch(b"a")) + bytes(marker(ControlRecordType.COMMIT, producer_id=1, base_offset=1))
    partition(tmp_path, content)
    assert offsets(tmp_path) == [0]
    assert [(row["offset"], row["isControl"]) for row in rows(tmp_path, includeControl=True)] == [(0, False), (1, True)]
