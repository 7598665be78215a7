from __future__ import annotations

import struct
import zlib
from collections.abc import Iterable
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.records.batch import AnyBatch, RecordBatch, batches
from odradek.protocol.records.builder import build_batch
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.control import ControlRecordType, EndTransactionMarker, build_end_transaction_batch
from odradek.protocol.records.convert import (
    UnsupportedConversionError,
    convert_to_magic,
    deep_records,
    down_convert,
    overflow_batch,
    rebuild,
)
from odradek.protocol.records.errors import CorruptRecordError, InvalidRecordError
from odradek.protocol.records.legacy import build_message, build_messages
from odradek.protocol.records.record import Record, SimpleRecord
from tests.support.wire.record_strategies import T, headerless_records, spaced_records

THREE = [SimpleRecord(T, b"a", b"1"), SimpleRecord(T + 9, None, b""), SimpleRecord(T - 9, b"c", None)]
CODECS = [CompressionType.NONE, CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4]
MARKER = build_end_transaction_batch(
    EndTransactionMarker(type=ControlRecordType.COMMIT, coordinator_epoch=0),
    timestamp=T,
    producer_id=1,
    producer_epoch=0,
    base_offset=3,
)


def scan(data: bytes | bytearray) -> list[AnyBatch]:
    return list(batches(memoryview(data)))


def records_of(data: bytes | bytearray) -> list[Record]:
    for batch in scan(data):
        batch.ensure_valid()
    return [record for batch in scan(data) for record in batch.records()]


def down(data: bytes | bytearray, magic: int = 1, first_offset: int = 0) -> bytes:
    return down_convert(memoryview(data), magic=magic, first_offset=first_offset).records


# Down


@given(sample=spaced_records())
def test_down_conversion_keeps_offsets_keys_and_values(sample: tuple[int, list[Record]]) -> None:
    base_offset, records = sample
    magic_1 = [record._replace(headers=()) for record in records]
    magic_0 = [record._replace(timestamp=-1) for record in magic_1]
    for codec, (magic, expected) in product(CODECS, enumerate((magic_0, magic_1))):
        converted = down(build_batch(records, base_offset=base_offset, compression_type=codec), magic)
        assert records_of(converted) == expected, (codec, magic)
        assert all(batch.magic == magic for batch in scan(converted)), (codec, magic)


def test_uncompressed_batch_begins_at_the_record_asked_for() -> None:
    assert [record.offset for record in records_of(down(build_batch(THREE, base_offset=10), first_offset=11))] == [
        11,
        12,
    ]


def test_compressed_batch_stays_whole() -> None:
    data = build_batch(THREE, base_offset=10, compression_type=CompressionType.GZIP)
    assert [record.offset for record in records_of(down(data, first_offset=11))] == [10, 11, 12]


def test_control_batches_are_left_out() -> None:
    data = bytes(build_batch(THREE)) + bytes(MARKER) + bytes(build_batch(THREE, base_offset=4))
    assert [record.offset for record in records_of(down(data))] == [0, 1, 2, 4, 5, 6]


def test_control_batches_and_records_before_the_offset_are_left_out() -> None:
    assert down(MARKER) == b""
    assert down(build_batch(THREE), first_offset=3) == b""


@pytest.mark.parametrize(
    ("remaining", "size", "declared"),
    [
        (1, 1, None),
        (11, 11, None),
        (12, 12, 61),
        (60, 60, 61),
        (61, 61, 62),
        (99, 99, 100),
        (100, 100, 101),
        (500, 100, 501),
    ],
)
def test_overflow_batch_fills_the_room_and_declares_a_larger_size(
    remaining: int, size: int, declared: int | None
) -> None:
    filler = overflow_batch(remaining, 100)
    assert len(filler) == size
    if declared is not None:
        assert filler == struct.pack(">qi", -1, declared) + bytes(size - 12)
        assert scan(filler) == []


def test_an_empty_buffer_stays_empty() -> None:
    assert down(b"") == b""


def test_older_messages_pass_as_they_are() -> None:
    data = build_messages(THREE, 0, compression_type=CompressionType.LZ4) + build_message(1, 3, T, b"k", b"v")
    assert down(data) == data
    assert [record.timestamp for record in records_of(down(data, magic=0))] == [-1] * 4
    assert [batch.magic for batch in scan(down(data, magic=0))] == [0, 0]


def test_log_append_time_is_kept() -> None:
    converted = down(build_batch(THREE, timestamp_type=1, log_append_time=T + 99))
    assert [batch.timestamp_type for batch in scan(converted)] == [1, 1, 1]
    assert [record.timestamp for record in records_of(converted)] == [T + 99] * 3


def test_zstd_is_refused_wherever_it_is() -> None:
    first = bytes(build_batch(THREE))
    zstd = bytes(build_batch(THREE, base_offset=3, compression_type=CompressionType.ZSTD))
    for data in (zstd, first + zstd):
        with pytest.raises(UnsupportedConversionError):
            down(data)


def test_batches_are_converted_one_by_one() -> None:
    three = bytes(build_batch(THREE)) * 3
    assert down(three, magic=0) == b"".join(convert_to_magic(batch, 0).records for batch in scan(three))


def test_wrapper_offsets_count_from_the_first_record_left() -> None:
    records = [Record(105, T, b"a", b"1"), Record(109, T, b"b", b"2")]
    (batch,) = scan(build_batch(records, base_offset=100, compression_type=CompressionType.GZIP))
    (converted,) = scan(convert_to_magic(batch, 1).records)
    assert (converted.base_offset, converted.last_offset) == (105, 109)


# Up


def up_convert(messages: Iterable[AnyBatch], **how: int) -> bytearray:
    """As the validator does it."""
    return rebuild((record for message in messages for record in deep_records(message)), **how)


def fits_a_batch(records: list[SimpleRecord]) -> bool:
    """Whether the distance of the timestamps from the first one has 64 bits."""
    return all(record.timestamp - records[0].timestamp < 1 << 63 for record in records)


@given(records=st.lists(headerless_records, min_size=1, max_size=5).filter(fits_a_batch))
def test_up_conversion_assigns_offsets_and_keeps_the_rest(records: list[SimpleRecord]) -> None:
    for magic, source_codec, codec in product((0, 1), CODECS, CompressionType):
        data = build_messages(records, magic, compression_type=source_codec)
        built = up_convert(scan(data), base_offset=1000, compression_type=codec, partition_leader_epoch=6)
        batch = RecordBatch(memoryview(built))
        assert (batch.magic, batch.compression_type, batch.partition_leader_epoch) == (2, codec, 6)
        assert (batch.base_offset, batch.record_count, batch.producer_id) == (1000, len(records), -1)
        assert records_of(built) == [
            Record(1000 + n, -1 if magic == 0 else record.timestamp, record.key, record.value)
            for n, record in enumerate(records)
        ], (magic, source_codec, codec)


def test_timestamps_that_are_too_far_apart_are_refused() -> None:
    last = (1 << 63) - 1
    messages = build_messages([SimpleRecord(-1, None, None), SimpleRecord(last, None, None)], 1)
    with pytest.raises(InvalidRecordError, match=f"The timestamps -1 and {last} are too far apart for one batch"):
        up_convert(scan(messages), base_offset=0, compression_type=0)
    built = up_convert(
        scan(build_messages([SimpleRecord(0, None, None), SimpleRecord(last, None, None)], 1)),
        base_offset=0,
        compression_type=0,
    )
    assert [record.timestamp for record in records_of(built)] == [0, last]


def test_up_conversion_with_log_append_time() -> None:
    built = up_convert(
        scan(build_messages(THREE, 1)), base_offset=0, compression_type=0, timestamp_type=1, log_append_time=T + 5
    )
    assert [record.timestamp for record in records_of(built)] == [T + 5] * 3


def test_checksums_inside_a_wrapper_are_verified() -> None:
    inner = bytearray(build_message(1, 0, T, b"k", b"v"))
    inner[-1] ^= 1
    deflate = zlib.compressobj(wbits=31)
    packed = deflate.compress(inner) + deflate.flush()
    (batch,) = scan(build_message(1, 0, T, None, packed, compression_type=CompressionType.GZIP))
    batch.ensure_valid()
    with pytest.raises(CorruptRecordError, match="crc"):
        list(deep_records(batch))


def test_another_magic_inside_a_wrapper_is_refused_from_a_client() -> None:
    deflate = zlib.compressobj(wbits=31)
    packed = deflate.compress(build_message(0, 0, T, b"k", b"v")) + deflate.flush()
    (batch,) = scan(build_message(1, 0, T, None, packed, compression_type=CompressionType.GZIP))
    with pytest.raises(InvalidRecordError, match="does not match outer magic"):
        list(deep_records(batch))


def test_an_empty_list_cannot_be_converted_up() -> None:
    with pytest.raises(InvalidRecordError):
        up_convert([], base_offset=0, compression_type=0)


# Rebuilding


def test_rebuilt_batch_keeps_producer_and_headers_and_closes_gaps() -> None:
    source = [Record(0, T, b"a", b"1", (("h", b"x"),)), Record(4, T + 1, b"b", None)]
    (like,) = scan(build_batch(source, producer_id=5, producer_epoch=1, base_sequence=8, is_transactional=True))
    built = rebuild(
        list(like.records()), base_offset=70, compression_type=CompressionType.LZ4, like=like, partition_leader_epoch=2
    )
    (batch,) = scan(built)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.is_transactional) == (5, 1, 8, True)
    assert (batch.partition_leader_epoch, batch.last_offset) == (2, 71)
    assert [(record.offset, record.headers) for record in batch.records()] == [(70, (("h", b"x"),)), (71, ())]
