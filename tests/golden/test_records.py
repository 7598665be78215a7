"""Record bytes of Apache Kafka 3.9.1: ours are the same, and we read the same records from theirs.

`records/kafka-3.9.1.txt` was written by `records/CaptureRecords.java`, one "name hex" per line. Compressed bytes
depend on the compressor, so there the content is compared; everything uncompressed is compared byte for byte.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.protocol.records.batch import AnyBatch, RecordBatch, batches
from odradek.protocol.records.builder import build_batch, build_empty_batch
from odradek.protocol.records.checksum import crc32c
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.control import (
    ControlRecordType,
    EndTransactionMarker,
    build_end_transaction_batch,
)
from odradek.protocol.records.convert import down_convert
from odradek.protocol.records.layout import TRANSACTIONAL_MASK
from odradek.protocol.records.legacy import build_message, build_messages
from odradek.protocol.records.record import Record, SimpleRecord

T = 1_700_000_000_000
KAFKA = {
    name: bytes.fromhex(text)
    for name, text in (
        line.split() for line in (Path(__file__).parent / "records" / "kafka-3.9.1.txt").read_text("utf-8").splitlines()
    )
}
HEADERS = (("h", b"\x01\x02"), ("ü", None))
THREE = (
    Record(10, T, b"key1", b"value1", HEADERS),
    Record(11, T + 7, None, b""),
    Record(12, T - 3, b"k", None),
)


def captured(prefix: str) -> list[str]:
    return [name for name in KAFKA if name.startswith(prefix)]


def views(data: bytes | bytearray) -> list[AnyBatch]:
    found = list(batches(memoryview(data)))
    for batch in found:
        batch.ensure_valid()
    assert sum(batch.size_in_bytes for batch in found) == len(data)
    return found


def records_of(data: bytes | bytearray) -> list[Record]:
    return [record for batch in views(data) for record in batch.records()]


def seen_by_consumer(magic: int, timestamp_type: str, first_offset: int = 10) -> list[Record]:
    """The three records after what the format drops."""
    seen = [record for record in THREE if record.offset >= first_offset]
    if timestamp_type == "LogAppendTime":
        seen = [record._replace(timestamp=T + 1000) for record in seen]
    if magic < 2:
        seen = [record._replace(headers=()) for record in seen]
    if magic == 0:
        seen = [record._replace(timestamp=-1) for record in seen]
    return seen


def test_crc32c_of_the_check_string() -> None:
    assert crc32c(b"123456789", 0, 0) == 0xE3069283


@pytest.mark.parametrize(("count", "size"), [(1, 78), (2, 95)])
def test_size_of_the_worked_example(count: int, size: int) -> None:
    batch = build_batch([SimpleRecord(T, b"key%d" % n, b"value%d" % n) for n in range(1, count + 1)])
    assert len(batch) == size


def test_one_record_batch_of_the_format_description() -> None:
    batch = build_batch([SimpleRecord(T, b"k", b"v")], partition_leader_epoch=0)
    assert batch.hex() == (
        "0000000000000000" "0000003a" "00000000" "02" "e99b8dd8" "0000" "00000000" "0000018bcfe56800" "0000018bcfe56800"
        "ffffffffffffffff" "ffff" "ffffffff" "00000001" "10000000026b027600"
    )  # fmt: skip
    assert len(batch) == 70


def test_idempotent_batch_of_the_format_description() -> None:
    batch = build_batch(
        [SimpleRecord(T, b"k", b"v", (("h", b"x"),)), SimpleRecord(T + 7, None, b""), SimpleRecord(T - 3, b"k", None)],
        base_offset=5,
        partition_leader_epoch=3,
        producer_id=1000,
        producer_epoch=0,
        base_sequence=0,
    )
    assert batch.hex() == (
        "00000000000000050000004d00000003025e9c3da90000000000020000018bcfe568000000018bcfe56807"
        "00000000000003e80000000000000000000318000000026b027602026802780c000e020100000e000504026b0100"
    )


def test_commit_marker_of_the_format_description() -> None:
    batch = build_end_transaction_batch(
        EndTransactionMarker(type=ControlRecordType.COMMIT, coordinator_epoch=4),
        timestamp=T,
        producer_id=1000,
        producer_epoch=0,
        base_offset=9,
        partition_leader_epoch=3,
    )
    assert batch.hex() == (
        "0000000000000009" "00000042" "00000003" "02" "ef262843" "0030" "00000000" "0000018bcfe56800" "0000018bcfe56800"
        "00000000000003e8" "0000" "ffffffff" "00000001" "20000000080000" "00010c00000000000400"
    )  # fmt: skip
    assert len(batch) == 78


def test_legacy_message_of_the_format_description() -> None:
    message = build_message(1, 0, T, b"k", b"v")
    assert message.hex() == "00000000000000000000001839268c3301000000018bcfe56800000000016b0000000176"


@pytest.mark.parametrize("name", captured("three/"))
def test_kafka_batches_read_as_written(name: str) -> None:
    _, magic, codec, timestamp_type = name.split("/")
    batch = views(KAFKA[name])[0]
    assert batch.magic == int(magic[1])
    assert CompressionType(batch.compression_type).name.lower() == codec
    assert records_of(KAFKA[name]) == seen_by_consumer(batch.magic, timestamp_type)


@pytest.mark.parametrize("name", captured("three/"))
def test_our_batches_are_kafkas(name: str) -> None:
    _, magic_name, codec_name, timestamp_type = name.split("/")
    magic, codec = int(magic_name[1]), CompressionType[codec_name.upper()]
    is_append_time = timestamp_type == "LogAppendTime"
    log_append_time = T + 1000 if is_append_time else -1
    built: bytes | bytearray
    if magic == 2:
        built = build_batch(
            THREE,
            base_offset=10,
            compression_type=codec,
            timestamp_type=int(is_append_time),
            log_append_time=log_append_time,
            partition_leader_epoch=3,
        )
    else:
        built = build_messages(
            THREE,
            magic,
            base_offset=10,
            compression_type=codec,
            timestamp_type=int(is_append_time),
            log_append_time=log_append_time,
        )
    if codec == CompressionType.NONE:
        assert built == KAFKA[name]
    else:
        assert records_of(built) == records_of(KAFKA[name])
        ours, theirs = views(built)[0], views(KAFKA[name])[0]
        for attribute in ("base_offset", "last_offset", "attributes", "max_timestamp", "base_timestamp", "magic"):
            assert getattr(ours, attribute) == getattr(theirs, attribute), attribute


@pytest.mark.parametrize("name", captured("200000x/"))
def test_streams_of_several_blocks_are_read(name: str) -> None:
    (record,) = records_of(KAFKA[name])
    assert record.value == b"x" * 200_000


def test_transactional_batch_with_gaps() -> None:
    built = build_batch(
        [Record(100, T, b"a", b"b"), Record(105, T + 5, b"a", b"c")],
        base_offset=100,
        last_offset=110,
        producer_id=1000,
        producer_epoch=0,
        base_sequence=7,
        is_transactional=True,
        partition_leader_epoch=3,
    )
    assert built == KAFKA["transactional-gaps"]
    batch = RecordBatch(memoryview(built))
    assert (batch.last_offset, batch.next_offset, batch.record_count, batch.last_sequence) == (110, 111, 2, 17)
    assert [record.sequence for record in batch.records()] == [7, 12]


def test_delete_horizon_takes_the_place_of_the_base_timestamp() -> None:
    records = [SimpleRecord(T, b"a", None), SimpleRecord(T + 1, b"b", b"x")]
    built = build_batch(records, base_offset=20, partition_leader_epoch=3, delete_horizon_ms=T + 86_400_000)
    assert built == KAFKA["delete-horizon"]
    batch = RecordBatch(memoryview(built))
    assert batch.delete_horizon_ms == T + 86_400_000
    assert [record.timestamp for record in batch.records()] == [T, T + 1]


@pytest.mark.parametrize("kind", [ControlRecordType.COMMIT, ControlRecordType.ABORT])
def test_markers(kind: ControlRecordType) -> None:
    built = build_end_transaction_batch(
        EndTransactionMarker(type=kind, coordinator_epoch=4),
        timestamp=T,
        producer_id=1000,
        producer_epoch=0,
        base_offset=9,
        partition_leader_epoch=3,
    )
    assert built == KAFKA[kind.name.lower()]


def test_emptied_batch() -> None:
    built = build_empty_batch(
        base_offset=500,
        last_offset=509,
        max_timestamp=T,
        attributes=TRANSACTIONAL_MASK | CompressionType.LZ4,
        producer_id=1000,
        producer_epoch=2,
        base_sequence=40,
        partition_leader_epoch=6,
    )
    assert built == KAFKA["empty"]
    assert list(RecordBatch(memoryview(built)).records()) == []


@pytest.mark.parametrize("name", captured("down/"))
def test_down_conversion(name: str) -> None:
    _, codec, timestamp_type, magic, _ = name.split("/")
    source = KAFKA[f"three/v2/{codec}/{timestamp_type}"]
    converted = down_convert(memoryview(source), magic=int(magic[1]), first_offset=11).records
    if codec == "none":
        assert converted == KAFKA[name]
    else:
        assert views(converted)[0].attributes == views(KAFKA[name])[0].attributes
        assert views(converted)[0].max_timestamp == views(KAFKA[name])[0].max_timestamp
    # Only an uncompressed batch is cut at the offset that was asked for.
    first_offset = 11 if codec == "none" else 10
    assert records_of(converted) == records_of(KAFKA[name])
    assert records_of(converted) == seen_by_consumer(int(magic[1]), timestamp_type, first_offset)
