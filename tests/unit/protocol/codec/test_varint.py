from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.codec.varint import read_uvarint, read_varlong, write_uvarint, write_varint

UNSIGNED = [
    (0, "00"),
    (1, "01"),
    (127, "7f"),
    (128, "8001"),
    (300, "ac02"),
    (16383, "ff7f"),
    (16384, "808001"),
    (0xFFFFFFFF, "ffffffff0f"),
]
ZIGZAG = [(0, "00"), (-1, "01"), (1, "02"), (63, "7e"), (-64, "7f"), (64, "8001"), (-(1 << 31), "ffffffff0f")]


@pytest.mark.parametrize(("value", "encoded"), UNSIGNED)
def test_unsigned_examples(value: int, encoded: str) -> None:
    assert write_uvarint(value).hex() == encoded
    assert read_uvarint(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@pytest.mark.parametrize(("value", "encoded"), ZIGZAG)
def test_zigzag_examples(value: int, encoded: str) -> None:
    assert write_varint(value).hex() == encoded
    assert read_varlong(bytes.fromhex(encoded), 0) == (value, len(encoded) // 2)


@given(st.integers(0, 0xFFFFFFFF), st.binary(max_size=3), st.binary(max_size=3))
def test_unsigned_round_trip_in_the_middle_of_a_buffer(value: int, before: bytes, after: bytes) -> None:
    encoded = write_uvarint(value)
    assert read_uvarint(memoryview(before + encoded + after), len(before)) == (value, len(before) + len(encoded))


@given(st.integers(-(1 << 63), (1 << 63) - 1))
def test_varlong_round_trip(value: int) -> None:
    encoded = write_varint(value)
    assert read_varlong(encoded, 0) == (value, len(encoded))


def test_longer_than_necessary_is_read() -> None:
    assert read_uvarint(b"\x81\x80\x80\x80\x00", 0) == (1, 5)


@pytest.mark.parametrize("value", [-1, 1 << 32])
def test_refuses_to_write_what_is_not_32_bits(value: int) -> None:
    with pytest.raises(ValueError, match="outside the range"):
        write_uvarint(value)


def test_five_bytes_are_the_limit_of_32_bits_and_ten_of_64() -> None:
    with pytest.raises(ValueError, match="longer than 5 bytes"):
        read_uvarint(b"\x80" * 5 + b"\x01", 0)
    assert read_varlong(b"\x80" * 9 + b"\x01", 0)[1] == 10
    with pytest.raises(ValueError, match="longer than 10 bytes"):
        read_varlong(b"\x80" * 10 + b"\x01", 0)


def test_bits_beyond_the_type_are_refused_in_messages_and_dropped_in_records() -> None:
    assert read_uvarint(b"\xff\xff\xff\xff\x0f", 0) == (0xFFFFFFFF, 5)
    with pytest.raises(ValueError, match="32 bits"):
        read_uvarint(b"\xff\xff\xff\xff\x1f", 0)
    assert read_varlong(b"\xff" * 9 + b"\x01", 0) == (-(1 << 63), 10)
    assert read_varlong(b"\xff" * 9 + b"\x03", 0) == (-(1 << 63), 10)


@pytest.mark.parametrize("read", [read_uvarint, read_varlong])
def test_a_buffer_that_ends_is_an_index_error(read: object) -> None:
    assert callable(read)
    for cut in (b"", b"\x80", b"\xff\xff"):
        with pytest.raises(IndexError):
            read(cut, 0)
