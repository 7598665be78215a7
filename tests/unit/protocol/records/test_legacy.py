from __future__ import annotations

import struct
import tracemalloc
import zlib
from contextlib import suppress
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.records.batch import batches
from odradek.protocol.records.compression import CompressionType, compress
from odradek.protocol.records.errors import (
    CorruptRecordError,
    DecompressedSizeError,
    InvalidRecordError,
    UnsupportedCompressionTypeError,
)
from odradek.protocol.records.legacy import LegacyBatch, build_message, build_messages
from odradek.protocol.records.record import Record, SimpleRecord
from tests.support.wire.record_strategies import T, headerless_records, spaced_records

CODECS = [CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4]
THREE = [SimpleRecord(T, b"a", b"1"), SimpleRecord(T + 9, None, b""), SimpleRecord(T - 9, b"c", None)]


def view(data: bytes | bytearray) -> LegacyBatch:
    return LegacyBatch(memoryview(data))


def wrapper(
    offset: int, inner: bytes, *, magic: int = 1, codec: int = CompressionType.GZIP, timestamp_type: int = 0
) -> LegacyBatch:
    packed = compress(codec, inner, magic=magic)
    return view(
        build_message(magic, offset, T + 50, None, packed, compression_type=codec, timestamp_type=timestamp_type)
    )


def test_uncompressed_message_is_a_batch_of_one() -> None:
    batch = view(build_message(1, 7, T, b"k", b"v"))
    batch.ensure_valid()
    assert (batch.base_offset, batch.last_offset, batch.next_offset, batch.last_offset_delta) == (7, 7, 8, 0)
    assert (batch.magic, batch.timestamp_type, batch.base_timestamp, batch.max_timestamp) == (1, 0, T, T)
    assert (batch.key, batch.value) == (b"k", b"v")
    assert list(batch.records()) == [Record(7, T, b"k", b"v")]
    assert batch.size_in_bytes == len(batch.buffer)
    assert "last_offset=7" in repr(batch)


def test_fields_that_old_messages_do_not_have() -> None:
    batch = view(build_message(0, 7, T, b"k", b"v"))
    assert (batch.max_timestamp, batch.timestamp_type) == (-1, -1)
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence, batch.last_sequence) == (-1, -1, -1, -1)
    assert (batch.partition_leader_epoch, batch.record_count, batch.delete_horizon_ms) == (-1, None, None)
    flags = (batch.is_control, batch.is_transactional, batch.has_producer_id, batch.delete_horizon_ms is not None)
    assert not any(flags)


def test_log_append_time_of_a_single_message() -> None:
    batch = view(build_message(1, 7, T, b"k", b"v", timestamp_type=1))
    assert (batch.timestamp_type, batch.max_timestamp) == (1, T)


@given(sample=spaced_records(with_headers=False))
def test_round_trip(sample: tuple[int, list[Record]]) -> None:
    base_offset, records = sample
    for magic, codec in product((0, 1), (CompressionType.NONE, *CODECS)):
        data = build_messages(records, magic, base_offset=base_offset, compression_type=codec)
        found = list(batches(memoryview(data)))
        for batch in found:
            batch.ensure_valid()
        assert found[0].base_offset == records[0].offset
        assert found[-1].last_offset == records[-1].offset
        expected = [record._replace(timestamp=-1) for record in records] if magic == 0 else records
        assert [record for batch in found for record in batch.records()] == expected, (magic, codec)


@pytest.mark.parametrize("magic", [0, 1])
@given(records=st.lists(headerless_records, min_size=1, max_size=3), choice=st.data())
def test_damage_raises_nothing_else(magic: int, records: list[SimpleRecord], choice: st.DataObject) -> None:
    """Under a checksum made right again, as a hostile client would send it."""
    data = bytearray(build_messages(records, magic, compression_type=choice.draw(st.sampled_from([0, *CODECS]))))
    size = 12 + struct.unpack_from(">i", data, 8)[0]
    data[choice.draw(st.integers(17, size - 1))] ^= 1 << choice.draw(st.integers(0, 7))
    struct.pack_into(">I", data, 12, zlib.crc32(data[16:size]))
    batch = view(data[:size])
    batch.ensure_valid()
    with suppress(CorruptRecordError):
        for record in batch.records(100_000):
            assert -(2**63) <= record.offset < 2**63


def test_flipped_bits_are_noticed() -> None:
    original = build_message(1, 7, T, b"k", b"v")
    for position in range(12, len(original)):
        data = bytearray(original)
        data[position] ^= 1
        with pytest.raises(CorruptRecordError):
            view(data).ensure_valid()


# Wrappers


def test_wrapper_of_magic_1_holds_relative_offsets() -> None:
    batch = view(build_messages(THREE, 1, base_offset=100, compression_type=CompressionType.GZIP))
    assert (batch.base_offset, batch.last_offset, batch.last_offset_delta) == (100, 102, 2)
    assert batch.max_timestamp == T + 9
    assert [message.last_offset for message in batch.inner_messages()] == [0, 1, 2]
    assert [record.offset for record in batch.records()] == [100, 101, 102]


def test_wrapper_of_magic_0_holds_absolute_offsets() -> None:
    batch = view(build_messages(THREE, 0, base_offset=100, compression_type=CompressionType.GZIP))
    assert [message.last_offset for message in batch.inner_messages()] == [100, 101, 102]
    assert [record.offset for record in batch.records()] == [100, 101, 102]


def test_log_append_time_of_the_wrapper_is_that_of_all_its_records() -> None:
    batch = wrapper(2, build_messages(THREE, 1), timestamp_type=1)
    assert [record.timestamp for record in batch.records()] == [T + 50] * 3


def test_create_times_inside_a_wrapper_are_their_own() -> None:
    assert [record.timestamp for record in wrapper(2, build_messages(THREE, 1)).records()] == [T, T + 9, T - 9]


def test_gaps_inside_a_wrapper_are_kept() -> None:
    inner = build_message(1, 1, T, b"a", b"") + build_message(1, 4, T, b"b", b"")
    assert [record.offset for record in wrapper(104, inner).records()] == [101, 104]


def test_wrapper_offset_0_means_that_inner_offsets_are_absolute() -> None:
    """Some librdkafka versions send it."""
    inner = build_message(1, 0, T, b"a", b"") + build_message(1, 1, T, b"b", b"")
    assert [record.offset for record in wrapper(0, inner).records()] == [0, 1]


def test_wrapper_offset_below_the_last_inner_one_is_invalid() -> None:
    with pytest.raises(InvalidRecordError, match="wrapper offset '1'"):
        wrapper(1, build_messages(THREE, 1)).records()


def test_inner_offsets_are_added_up_within_64_bits_and_need_not_ascend() -> None:
    inner = build_message(1, 0, T, b"a", b"") + build_message(1, -(2**63) + 2, T, b"b", b"")
    assert [record.offset for record in wrapper(1, inner).records()] == [2**63 - 1, 1]
    assert [record.offset for record in wrapper(5, inner).records()] == [-(2**63) + 3, 5]


def test_wrapper_with_another_magic_inside_is_read() -> None:
    """KAFKA-4298 left such in logs."""
    (record,) = wrapper(7, build_message(0, 0, -1, b"a", b"1")).records()
    assert record == Record(7, -1, b"a", b"1")


@pytest.mark.parametrize(
    ("inner", "message"),
    [
        (b"", "no inner records"),
        (build_message(1, 0, T, b"a", b"")[:-1], "no inner records"),
        (struct.pack(">qi", 0, 13) + bytes(13), "less than the minimum"),
        (struct.pack(">qiIbb", 0, 14, 0, 2, 0) + bytes(8), "magic 2"),
        (build_message(1, 0, T, None, b"", compression_type=CompressionType.GZIP), "must not be compressed"),
        (struct.pack(">qiIbbi", 0, 14, 0, 0, 0, 100) + bytes(4), "do not fit"),
        (struct.pack(">qiIbb", 0, 14, 0, 1, 0) + bytes(8), "ends before a length"),
    ],
)
def test_contradictions_inside_a_wrapper(inner: bytes, message: str) -> None:
    with pytest.raises(CorruptRecordError, match=message):
        list(wrapper(0, inner).records())


def test_partial_message_at_the_end_of_a_wrapper_is_left_out() -> None:
    inner = build_message(1, 0, T, b"a", b"")
    assert len(list(wrapper(0, inner + inner[:20]).records())) == 1


def test_wrapper_without_value_or_with_zstd_is_invalid() -> None:
    with pytest.raises(InvalidRecordError, match="null value"):
        view(build_message(1, 0, T, None, None, compression_type=CompressionType.GZIP)).records()
    with pytest.raises(InvalidRecordError, match="compressionType"):
        view(build_message(1, 0, T, None, b"", compression_type=CompressionType.ZSTD)).records()


def test_decompression_is_limited() -> None:
    inner = build_message(1, 0, T, None, bytes(5000))
    with pytest.raises(DecompressedSizeError):
        wrapper(0, inner).records(5000)
    assert len(list(wrapper(0, inner).records(len(inner)))) == 1


# The view


@pytest.mark.parametrize(("magic", "size"), [(0, 18), (1, 26)])
def test_header_alone_can_be_viewed_but_is_not_valid(magic: int, size: int) -> None:
    data = build_message(magic, 7, T, b"k", b"v")
    assert view(data[:size]).size_in_bytes == len(data)
    assert not view(data[:size]).is_valid()
    with pytest.raises(CorruptRecordError, match="declares"):
        view(data[:size]).ensure_valid()
    with pytest.raises(CorruptRecordError):
        view(data[: size - 1])


def test_offset_lies_outside_the_checksum() -> None:
    batch = view(build_message(1, 7, T, b"k", b"v"))
    moved = view(batch.with_last_offset(2**40) + bytes(batch.buffer[8:]))
    moved.ensure_valid()
    assert moved.base_offset == 2**40


# Building


def test_zstd_cannot_be_written() -> None:
    with pytest.raises(UnsupportedCompressionTypeError):
        build_messages(THREE, 1, compression_type=CompressionType.ZSTD)


def test_magic_2_is_not_a_message() -> None:
    with pytest.raises(ValueError, match="Invalid magic value 2"):
        build_message(2, 0, T, None, None)


def test_no_records_make_no_wrapper() -> None:
    assert build_messages([], 1, compression_type=CompressionType.GZIP) == b""


def test_headers_are_dropped() -> None:
    data = build_messages([SimpleRecord(T, b"k", b"v", (("h", b"x"),))], 1)
    assert data == build_message(1, 0, T, b"k", b"v")


def test_records_of_a_wrapper_are_made_one_by_one() -> None:
    count = 20_000
    batch = wrapper(0, build_message(1, 0, T, None, b"v") * count)
    tracemalloc.start()
    try:
        assert sum(1 for _ in batch.records(from_client=True)) == count
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak_bytes < 3 * count * 35, "the bytes, and no lists of values"
