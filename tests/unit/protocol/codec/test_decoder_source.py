"""Hostile and broken bytes: nothing but DecodeError may come out of a decoder, and nothing large may go in."""

from __future__ import annotations

import random
import tracemalloc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.codec.codec import DecodeBudget, DecodeError, decode, decode_from, encode
from odradek.protocol.codec.limits import MAX_STRING_BYTES, MAX_TAGGED_FIELDS
from odradek.protocol.codec.schema import (
    INT8,
    INT32,
    INT64,
    STRING,
    UUID,
    Message,
    RawTaggedField,
    Struct,
    array,
    byte_string,
    int8,
    int32,
    string,
    struct,
)
from odradek.protocol.codec.varint import write_uvarint
from odradek.protocol.messages.api_versions import ApiVersionsResponse
from odradek.protocol.messages.fetch import FetchRequest, ReplicaState
from odradek.protocol.messages.metadata import MetadataRequest
from odradek.protocol.messages.produce import ProduceRequest
from tests.support.wire.messages import every_message, every_version, random_struct

VERSIONS = list(every_version())


class Point(Struct):
    x: int = int32("0+")
    y: int = int32("0+")


class Sample(Message, versions="0-1", flexible="1+"):
    """Version 0 is classic, version 1 flexible; each test sets the one field it is about."""

    text: str = string("0+")
    note: str | None = string("0+", nullable="0+", default=None)
    blob: bytes = byte_string("0+")
    numbers: list[int] = array(INT32, "0+")
    maybe_numbers: list[int] | None = array(INT8, "0+", nullable="0+", default=None)
    texts: list[str] = array(STRING, "0+")
    points: list[Point] = array(Point, "0+")
    longs: list[int] = array(INT64, "1+", tag=0, tagged="1+")
    uuids: list[bytes] = array(UUID, "1+", tag=1, tagged="1+")


class Tagged(Message, versions="0", flexible="0+"):
    plain: int = int8("0+")
    small: int = int8("0+", tag=0, tagged="0+")
    name: str | None = string("0+", nullable="0+", default="x", tag=3, tagged="0+")


class Optional(Message, versions="0", flexible="0+"):
    point: Point | None = struct(Point, "0+", nullable="0+", default=None)


class Required(Message, versions="0-1", flexible="1+"):
    text: str = string("0+")


def sample_v1(
    text: bytes = b"\x01",
    note: bytes = b"\x00",
    blob: bytes = b"\x01",
    numbers: bytes = b"\x01",
    maybe_numbers: bytes = b"\x00",
    texts: bytes = b"\x01",
    points: bytes = b"\x01",
    tags: bytes = b"\x00",
) -> bytes:
    return text + note + blob + numbers + maybe_numbers + texts + points + tags


def sample_v0(
    text: str = "0000",
    note: str = "ffff",
    blob: str = "00000000",
    numbers: str = "00000000",
    maybe_numbers: str = "ffffffff",
    texts: str = "00000000",
    points: str = "00000000",
) -> bytes:
    return bytes.fromhex(text + note + blob + numbers + maybe_numbers + texts + points)


def test_the_samples_are_messages() -> None:
    assert decode(Sample, sample_v0(), 0) == Sample()
    assert decode(Sample, sample_v1(), 1) == Sample()
    assert encode(Sample(), 0) == sample_v0()
    assert encode(Sample(), 1) == sample_v1()


# --- lengths and counts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "broken",
    [
        {"text": "0001"},
        {"text": "7fff"},
        {"note": "0100"},
        {"blob": "7fffffff"},
        {"numbers": "00000100"},
        {"numbers": "7fffffff"},
        {"numbers": "40000001"},  # times four is 4 in 32 bits
        {"maybe_numbers": "7fffffff"},
        {"texts": "7fffffff"},
        {"points": "00000001"},
        {"points": "20000001"},
    ],
    ids=str,
)
def test_classic_lengths_beyond_the_end(broken: dict[str, str]) -> None:
    with pytest.raises(DecodeError):
        decode(Sample, sample_v0(**broken)[: 4 + 4 * 6], 0)


@pytest.mark.parametrize("field", ["text", "blob", "numbers", "texts", "points"])
def test_classic_null_where_null_is_not_allowed(field: str) -> None:
    null = "ffff" if field == "text" else "ffffffff"
    with pytest.raises(DecodeError, match=f"Sample.{field} was serialized as null"):
        decode(Sample, sample_v0(**{field: null}), 0)


@pytest.mark.parametrize("field", ["text", "blob", "numbers", "texts", "points"])
def test_compact_null_where_null_is_not_allowed(field: str) -> None:
    with pytest.raises(DecodeError, match=f"Sample.{field} was serialized as null"):
        decode(Sample, sample_v1(**{field: b"\x00"}), 1)


@pytest.mark.parametrize("length", ["ffff", "fffe", "8000"])
def test_any_negative_classic_length_is_null(length: str) -> None:
    """As in Apache Kafka, which asks for `length < 0`."""
    assert decode(Sample, sample_v0(note=length), 0).note is None


@pytest.mark.parametrize("field", ["text", "note", "blob", "numbers", "maybe_numbers", "texts", "points"])
@pytest.mark.parametrize("count", [100, 0x7FFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF])
def test_compact_lengths_beyond_the_end(field: str, count: int) -> None:
    with pytest.raises(DecodeError):
        decode(Sample, sample_v1(**{field: write_uvarint(count)}), 1)


def test_counts_above_the_remaining_bytes_are_refused() -> None:
    fits = (100).to_bytes(4, "big") + bytes(400)
    request = bytes.fromhex("0000ffff00000000") + fits
    rest = bytes.fromhex("ffffffff0000000000000000")
    assert len(decode(Sample, request + rest, 0).numbers) == 100
    with pytest.raises(DecodeError, match="claims 100 elements, but there are only 399 bytes"):
        decode(Sample, (request)[:-1], 0)


def test_a_huge_count_allocates_nothing() -> None:
    data = sample_v1(points=write_uvarint(0x7FFFFFFF)) + bytes(1000)
    decode(Sample, sample_v1(), 1)  # compiled before memory is measured
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError):
            decode(Sample, data, 1)
        assert tracemalloc.get_traced_memory()[1] < 500_000  # other threads need some, too
    finally:
        tracemalloc.stop()


def test_strings_have_kafkas_bound_where_the_compact_length_could_say_more() -> None:
    longest = write_uvarint(MAX_STRING_BYTES + 1) + b"a" * MAX_STRING_BYTES
    assert len(decode(Required, longest + b"\0", 1).text) == MAX_STRING_BYTES
    with pytest.raises(DecodeError, match="too many for its type"):
        decode(Required, write_uvarint(MAX_STRING_BYTES + 2) + b"a" * (MAX_STRING_BYTES + 1) + b"\0", 1)


@pytest.mark.parametrize("broken", [b"\xff", b"\xc3(", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xc0\x80"])
def test_text_that_is_not_utf8(broken: bytes) -> None:
    with pytest.raises(DecodeError, match="utf-8"):
        decode(Required, len(broken).to_bytes(2, "big") + broken, 0)
    with pytest.raises(DecodeError, match="utf-8"):
        decode(Required, write_uvarint(len(broken) + 1) + broken + b"\0", 1)


def test_a_varint_without_end() -> None:
    with pytest.raises(DecodeError, match="longer than 5 bytes"):
        decode(Required, b"\xff" * 5 + b"\x01", 1)


def test_a_varint_of_more_than_32_bits() -> None:
    with pytest.raises(DecodeError, match="32 bits"):
        decode(Required, b"\x01\x01" + b"\xff\xff\xff\xff\x7f" + b"\0" * 10, 1)


def test_the_budget_bounds_primitive_elements_too() -> None:
    data = sample_v1(maybe_numbers=write_uvarint(51) + bytes(50))
    assert decode(Sample, data, 1, DecodeBudget(values=50)).maybe_numbers == [0] * 50
    with pytest.raises(DecodeError, match="number of values"):
        decode(Sample, data, 1, DecodeBudget(values=49))


# --- nullable structs -----------------------------------------------------------------------------------------------


def test_nullable_struct() -> None:
    assert decode(Optional, bytes.fromhex("ff00"), 0).point is None
    assert decode(Optional, bytes.fromhex("0100000001000000020000"), 0).point == Point(x=1, y=2)
    with pytest.raises(DecodeError):
        decode(Optional, bytes.fromhex("0100000001"), 0)


# --- tagged fields --------------------------------------------------------------------------------------------------


def tagged(*fields: tuple[int, bytes], count: int | None = None) -> bytes:
    section = write_uvarint(len(fields) if count is None else count)
    for tag, value in fields:
        section += write_uvarint(tag) + write_uvarint(len(value)) + value
    return b"\x07" + section


def test_known_tags_are_decoded_and_absent_ones_keep_their_default() -> None:
    assert decode(Tagged, tagged(), 0) == Tagged(plain=7)
    assert decode(Tagged, tagged((0, b"\x05")), 0) == Tagged(plain=7, small=5)
    assert decode(Tagged, tagged((0, b"\x05"), (3, b"\x00")), 0) == Tagged(plain=7, small=5, name=None)


def test_a_tagged_default_on_the_wire_is_accepted() -> None:
    assert decode(Tagged, tagged((0, b"\x00")), 0) == Tagged(plain=7)


def test_unknown_tags_are_retained() -> None:
    value, end = decode_from(Tagged, tagged((0, b"\x05"), (1, b"ab"), (200, b"")) + b"more", 0)
    assert value.small == 5
    assert value.unknown_tagged_fields == [RawTaggedField(1, b"ab"), RawTaggedField(200, b"")]
    assert end == len(tagged((0, b"\x05"), (1, b"ab"), (200, b"")))


def test_tagged_arrays_and_records_of_both_widths() -> None:
    value = Sample(longs=[1, -1, 1 << 62], uuids=[bytes(16), b"\xff" * 16])
    assert decode(Sample, encode(value, 1), 1) == value


@pytest.mark.parametrize(
    "section",
    [
        tagged((0, b"\x05"), (0, b"\x05")),
        tagged((3, b"\x00"), (0, b"\x05")),
        tagged((1, b""), (1, b"")),
        tagged((9, b""), (8, b"")),
    ],
)
def test_tags_must_ascend(section: bytes) -> None:
    with pytest.raises(DecodeError, match="tags must ascend"):
        decode(Tagged, section, 0)
    with pytest.raises(DecodeError, match="tags must ascend"):
        decode(Required, b"\x01" + section[1:], 1)


@pytest.mark.parametrize("value", [b"", b"\x05\x00", b"\x05" * 130])
def test_a_tagged_value_must_fill_its_size(value: bytes) -> None:
    with pytest.raises(DecodeError):
        decode(Tagged, tagged((0, value)) + bytes(10), 0)


def test_a_tagged_value_must_end_with_the_message() -> None:
    with pytest.raises(DecodeError):
        decode(Tagged, b"\x07\x01\x01\x05abcd", 0)
    with pytest.raises(DecodeError):
        decode(Required, b"\x01\x01\x01\x05abcd", 1)


@pytest.mark.parametrize("message", [Tagged, Required])
def test_tagged_fields_are_limited(message: type[Message]) -> None:
    def section(count: int) -> bytes:
        return tagged(*((tag, b"") for tag in range(10, 10 + count)))

    prefix = b"\x07" if message is Tagged else b"\x01"
    value = decode(message, prefix + section(MAX_TAGGED_FIELDS)[1:], message.VERSIONS.last)
    assert value.unknown_tagged_fields is not None
    assert len(value.unknown_tagged_fields) == MAX_TAGGED_FIELDS
    with pytest.raises(DecodeError, match="at most 128"):
        decode(message, prefix + section(MAX_TAGGED_FIELDS + 1)[1:], message.VERSIONS.last)
    with pytest.raises(DecodeError, match="claims 20000000 tagged fields"):
        decode(message, prefix + write_uvarint(20_000_000) + bytes(1000), message.VERSIONS.last)


def test_tagged_fields_cost_values() -> None:
    section = b"\x01" + tagged((10, b""), (11, b""))[1:]
    assert decode(Required, section, 1, DecodeBudget(values=2))
    with pytest.raises(DecodeError, match="number of values"):
        decode(Required, section, 1, DecodeBudget(values=1))


def test_a_message_of_the_future_is_read() -> None:
    """ApiVersions answers carry tags that a 3.9 broker does not know."""
    response = encode(ApiVersionsResponse(), 3)
    assert response[-1:] == b"\0"
    value = decode(ApiVersionsResponse, response[:-1] + tagged((90, b"new"))[1:], 3)
    assert value.unknown_tagged_fields == [RawTaggedField(90, b"new")]


def test_a_tagged_struct_is_read_with_its_own_tags() -> None:
    value = FetchRequest(replica_state=ReplicaState(replica_id=1, replica_epoch=9), cluster_id="c")
    assert decode(FetchRequest, encode(value, 17), 17) == value


# --- any bytes at all -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("message", every_message(), ids=lambda message: message.__name__)
def test_every_cut_is_a_decode_error(message: type[Message]) -> None:
    rng = random.Random(message.__name__)
    for version in range(message.VERSIONS.first, message.VERSIONS.last + 1):
        encoded = encode(random_struct(message, version, rng), version)
        cuts = range(len(encoded)) if len(encoded) < 40 else sorted(rng.sample(range(len(encoded)), 40))
        for cut in cuts:
            with pytest.raises(DecodeError):
                decode(message, encoded[:cut], version)


@pytest.mark.parametrize("message", every_message(), ids=lambda message: message.__name__)
def test_mutated_messages_decode_or_raise_decode_error(message: type[Message]) -> None:
    rng = random.Random(message.__name__)
    for version in range(message.VERSIONS.first, message.VERSIONS.last + 1):
        encoded = encode(random_struct(message, version, rng), version)
        for _ in range(12):
            try_to_decode(message, version, mutated(encoded, rng))
            try_to_decode(message, version, rng.randbytes(rng.randrange(80)))


@settings(deadline=None, max_examples=300)
@given(st.sampled_from(VERSIONS), st.binary(max_size=120))
def test_any_bytes_decode_or_raise_decode_error(message_version: tuple[type[Message], int], data: bytes) -> None:
    try_to_decode(*message_version, data)


def mutated(data: bytes, rng: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 5))):
        if not changed:
            break
        at = rng.randrange(len(changed))
        match rng.randrange(4):
            case 0:
                changed[at] = rng.choice((0, 1, 0x7F, 0x80, 0xFF, rng.randrange(256)))
            case 1:
                del changed[at : at + rng.randrange(1, 4)]
            case 2:
                changed[at:at] = rng.randbytes(rng.randrange(1, 6))
            case _:
                changed[at] ^= 1 << rng.randrange(8)
    return bytes(changed)


def try_to_decode(message: type[Message], version: int, data: bytes) -> None:
    """What decodes must also be a message that can be written again."""
    try:
        value, end = decode_from(message, memoryview(data), version)
    except DecodeError:
        return
    assert end <= len(data)
    again = encode(value, version)
    assert encode(decode(message, again, version), version) == again


def test_reading_a_produce_request_copies_no_records() -> None:
    records = bytes(1_000_000)
    encoded = bytes.fromhex("00ffff000000000202610200000000") + write_uvarint(len(records) + 1)
    buffer = memoryview(encoded + records + b"\0\0\0")
    decode(ProduceRequest, buffer, 9)
    tracemalloc.start()
    try:
        decode(ProduceRequest, buffer, 9)
        assert tracemalloc.get_traced_memory()[1] < 500_000  # other threads need some, too
    finally:
        tracemalloc.stop()


def test_null_and_empty_arrays_differ() -> None:
    assert decode(MetadataRequest, bytes.fromhex("ffffffff"), 1).topics is None
    assert decode(MetadataRequest, bytes.fromhex("00000000"), 1).topics == []
