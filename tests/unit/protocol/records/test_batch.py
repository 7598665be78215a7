from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.records.batch import (
    LegacyBatch,
    RecordBatch,
    assign_prefix,
    attributes_of_single_batch,
    batches,
    size_of_next_batch,
    view_batch,
)
from odradek.protocol.records.builder import assemble_batch, build_batch
from odradek.protocol.records.compression import CompressionType
from odradek.protocol.records.errors import CorruptRecordError, DecompressedSizeError, InvalidRecordError
from odradek.protocol.records.layout import BATCH_OVERHEAD, PREFIX
from odradek.protocol.records.legacy import build_message
from odradek.protocol.records.record import Record, SimpleRecord
from tests.support.wire.record_strategies import T, simple_records, spaced_records

TWO = [SimpleRecord(T, b"k", b"v"), SimpleRecord(T + 5, None, b"w")]


def view(batch: bytes | bytearray) -> RecordBatch:
    return RecordBatch(memoryview(batch))


def two(**options: int) -> bytearray:
    return build_batch(TWO, **options)  # type: ignore[arg-type]


def test_header_fields() -> None:
    batch = view(
        build_batch(
            TWO,
            base_offset=100,
            compression_type=CompressionType.GZIP,
            producer_id=7,
            producer_epoch=2,
            base_sequence=2**31 - 1,
            partition_leader_epoch=9,
            is_transactional=True,
        )
    )
    assert (batch.base_offset, batch.last_offset, batch.next_offset, batch.last_offset_delta) == (100, 101, 102, 1)
    assert (batch.base_timestamp, batch.max_timestamp, batch.timestamp_type) == (T, T + 5, 0)
    assert (batch.producer_id, batch.producer_epoch, batch.has_producer_id) == (7, 2, True)
    assert (batch.base_sequence, batch.last_sequence) == (2**31 - 1, 0)
    assert (batch.partition_leader_epoch, batch.magic, batch.record_count) == (9, 2, 2)
    assert (batch.compression_type, batch.is_transactional, batch.is_control) == (1, True, False)
    assert batch.delete_horizon_ms is None
    assert batch.size_in_bytes == len(batch.buffer)
    assert "offsets=[100, 101]" in repr(batch)


@pytest.mark.parametrize("transactional", [False, True])
def test_attributes_of_the_only_batch(transactional: bool) -> None:
    batch = build_batch(TWO, producer_id=1, producer_epoch=0, base_sequence=0, is_transactional=transactional)
    assert attributes_of_single_batch(memoryview(batch)) == view(batch).attributes


@pytest.mark.parametrize(
    "buffer",
    [
        b"",
        bytes(two()[: BATCH_OVERHEAD - 1]),
        bytes(two()[:-1]),
        bytes(two() + two()),
        bytes(two() + b"x"),
        bytes(build_message(1, 0, T, b"k", b"v" * BATCH_OVERHEAD)),
    ],
    ids=["nothing", "half a header", "half a batch", "two batches", "bytes behind it", "an old message"],
)
def test_anything_but_one_batch_has_no_attributes(buffer: bytes) -> None:
    assert attributes_of_single_batch(memoryview(buffer)) < 0


def test_batch_without_producer() -> None:
    batch = view(two())
    assert (batch.producer_id, batch.has_producer_id, batch.base_sequence, batch.last_sequence) == (-1, False, -1, -1)


@given(sample=spaced_records())
def test_round_trip(sample: tuple[int, list[Record]]) -> None:
    base_offset, records = sample
    for codec in CompressionType:
        batch = view(build_batch(records, base_offset=base_offset, compression_type=codec))
        batch.ensure_valid()
        assert list(batch.records()) == records, codec
        assert batch.record_count == batch.summary().record_count == len(batch.keys(batch.record_bytes())), codec
        assert batch.max_timestamp == batch.summary().max_timestamp, codec


@pytest.mark.parametrize("codec", CompressionType)
@given(records=st.lists(simple_records, min_size=1, max_size=4), choice=st.data())
def test_every_flipped_bit_is_noticed(
    codec: CompressionType, records: list[SimpleRecord], choice: st.DataObject
) -> None:
    data = build_batch(records, compression_type=codec)
    position = choice.draw(st.integers(16, len(data) - 1))
    data[position] ^= 1 << choice.draw(st.integers(0, 7))
    if position == 16:
        with pytest.raises(CorruptRecordError):
            [batch.ensure_valid() for batch in batches(memoryview(data))]
    else:
        with pytest.raises(CorruptRecordError):
            view(data).ensure_valid()


def resealed(data: bytearray) -> bytearray:
    """The same batch with the CRC of what it holds now, as a hostile client would send it."""
    header = view(data)
    return assemble_batch(
        header.payload,
        record_count=header.record_count,
        base_offset=header.base_offset,
        last_offset_delta=header.last_offset_delta,
        base_timestamp=header.base_timestamp,
        max_timestamp=header.max_timestamp,
        attributes=header.attributes,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
    )


@pytest.mark.parametrize("codec", CompressionType)
@given(records=st.lists(simple_records, min_size=1, max_size=4), choice=st.data())
def test_damage_under_a_right_checksum_raises_nothing_else(
    codec: CompressionType, records: list[SimpleRecord], choice: st.DataObject
) -> None:
    data = build_batch(records, compression_type=codec)
    data[choice.draw(st.integers(21, len(data) - 1))] ^= 1 << choice.draw(st.integers(0, 7))
    batch = view(resealed(data))
    batch.ensure_valid()
    for use in (lambda: list(batch.records(100_000)), lambda: batch.summary(100_000)):
        try:
            use()
        except CorruptRecordError:
            continue


@pytest.mark.parametrize("count", [-1, 0, 1, 3, 2**31 - 1])
def test_wrong_counts(count: int) -> None:
    data = two()
    struct.pack_into(">i", data, 57, count)
    batch = view(resealed(data))
    if count == 0:
        # Only the validator knows that a client must not send this; a compacted log may hold it.
        assert list(batch.records()) == []
        return
    with pytest.raises(InvalidRecordError):
        list(batch.records())
    with pytest.raises(InvalidRecordError):
        batch.summary()


def test_decompression_is_limited() -> None:
    batch = view(build_batch([SimpleRecord(T, None, bytes(5000))], compression_type=CompressionType.ZSTD))
    with pytest.raises(DecompressedSizeError):
        batch.records(5000)
    assert len(list(batch.records(5100))) == 1


def test_log_append_time() -> None:
    batch = view(build_batch(TWO, timestamp_type=1, log_append_time=T + 99))
    assert batch.timestamp_type == 1
    assert [record.timestamp for record in batch.records()] == [T + 99, T + 99]


# In front of the checksum


def test_prefix_and_rest_are_a_valid_batch() -> None:
    original = view(two())
    assigned = view(PREFIX.pack(2**40, original.length, 12) + bytes(original.buffer[16:]))
    assigned.ensure_valid()
    assert (assigned.base_offset, assigned.partition_leader_epoch) == (2**40, 12)
    assert list(assigned.records())[1] == Record(2**40 + 1, T + 5, None, b"w")


def test_prefix_can_be_assigned_in_place() -> None:
    data = two()
    assign_prefix(data, 2**40, 12)
    batch = view(data)
    batch.ensure_valid()
    assert (batch.base_offset, batch.partition_leader_epoch) == (2**40, 12)


# In the header, under the checksum


def test_header_with_log_append_time_has_a_new_checksum() -> None:
    original = view(two())
    header = original.header(base_offset=50, partition_leader_epoch=3, timestamp_type=1, max_timestamp=T + 77)
    changed = view(header + bytes(original.payload))
    changed.ensure_valid()
    assert changed.crc != original.crc
    assert (changed.base_offset, changed.partition_leader_epoch) == (50, 3)
    assert {record.timestamp for record in changed.records()} == {T + 77}
    back = view(changed.header(timestamp_type=0, max_timestamp=T + 5) + bytes(changed.payload))
    assert back.crc == original.crc


def test_header_without_changes_is_the_header() -> None:
    original = view(two(compression_type=1))
    assert original.header() == original.buffer[:BATCH_OVERHEAD]
    assert original.header(timestamp_type=0, max_timestamp=T + 5) == original.buffer[:BATCH_OVERHEAD]


# A view of less than the whole


def test_header_alone_can_be_viewed_but_is_not_valid() -> None:
    data = two()
    batch = view(data[:BATCH_OVERHEAD])
    assert (batch.size_in_bytes, batch.last_offset) == (len(data), 1)
    assert not batch.is_valid()
    with pytest.raises(CorruptRecordError, match="declares"):
        batch.ensure_valid()


def test_less_than_a_header_is_corrupt() -> None:
    with pytest.raises(CorruptRecordError, match="smaller than the minimum"):
        view(two()[: BATCH_OVERHEAD - 1])


# The scan


@given(st.lists(st.lists(simple_records, min_size=1, max_size=2), max_size=4), st.integers(0, 100))
def test_scan_finds_every_batch_and_leaves_out_a_partial_one(groups: list[list[SimpleRecord]], cut: int) -> None:
    whole = [bytes(build_batch(group)) for group in groups]
    tail = bytes(two())[: min(cut, len(two()) - 1)]
    found = list(batches(memoryview(b"".join(whole) + tail)))
    assert [bytes(batch.buffer) for batch in found] == whole


def test_scan_of_mixed_magics() -> None:
    data = build_message(0, 5, -1, b"k", b"v") + build_message(1, 6, T, b"k", b"v") + bytes(two(base_offset=7))
    found = list(batches(memoryview(data)))
    assert [(type(batch), batch.magic, batch.base_offset, batch.last_offset) for batch in found] == [
        (LegacyBatch, 0, 5, 5),
        (LegacyBatch, 1, 6, 6),
        (RecordBatch, 2, 7, 8),
    ]


@pytest.mark.parametrize("position", [0, 1])
@pytest.mark.parametrize(
    ("at", "value", "message"),
    [
        (8, struct.pack(">i", 13), "less than the minimum"),
        (8, struct.pack(">i", -1), "less than the minimum"),
        (16, b"\x03", "Invalid magic found in record: 3"),
        (16, b"\xff", "Invalid magic"),
    ],
)
def test_scan_refuses_invalid_sizes_and_magics(position: int, at: int, value: bytes, message: str) -> None:
    bad = two()
    bad[at : at + len(value)] = value
    with pytest.raises(CorruptRecordError, match=message):
        list(batches(memoryview(bytes(two()) * position + bytes(bad))))


def test_size_is_refused_even_where_the_magic_is_not_there_yet() -> None:
    with pytest.raises(CorruptRecordError):
        list(batches(memoryview(struct.pack(">qi", 0, 13))))
    assert list(batches(memoryview(struct.pack(">qi", 0, 14)))) == []


def test_magic_2_with_the_size_of_an_older_message_is_corrupt() -> None:
    data = struct.pack(">qiib", 0, 20, 0, 2) + bytes(20)
    with pytest.raises(CorruptRecordError, match="smaller than the minimum"):
        list(batches(memoryview(data)))


@given(st.binary(max_size=200))
def test_random_bytes_raise_nothing_else(data: bytes) -> None:
    try:
        for batch in batches(memoryview(data)):
            batch.ensure_valid()
    except CorruptRecordError:
        pass


def test_size_of_next_batch() -> None:
    data = memoryview(two())
    assert size_of_next_batch(data) == len(data)
    assert size_of_next_batch(data[:17]) == len(data)
    assert size_of_next_batch(data[:16]) is None
    assert size_of_next_batch(data[:11]) is None


def test_view_by_magic() -> None:
    assert isinstance(view_batch(memoryview(two())), RecordBatch)
    assert isinstance(view_batch(memoryview(build_message(1, 0, T, None, None))), LegacyBatch)
