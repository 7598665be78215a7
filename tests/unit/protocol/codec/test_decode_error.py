from __future__ import annotations

import pytest

from odradek.protocol.codec.decode_error import (
    DecodeError,
    count_out_of_bounds,
    length_out_of_bounds,
    read_unknown_tagged_fields,
)
from odradek.protocol.codec.schema import RawTaggedField


def read(section: str, count: int, *, values: int = 100, max_tags: int = 10) -> tuple[list[RawTaggedField], int, int]:
    data = bytes.fromhex(section)
    return read_unknown_tagged_fields(data, 0, len(data), count, values, max_tags)


def test_reads_a_section_and_says_what_it_cost() -> None:
    fields, position, values = read("0001aa800100", 2)
    assert fields == [RawTaggedField(0, b"\xaa"), RawTaggedField(128, b"")]
    assert position == 6
    assert values == 98


def test_a_count_may_need_more_than_the_byte_that_was_read() -> None:
    """0x82 0x00 is a 2 in two bytes."""
    fields, _, _ = read("0000000100", 0x82)
    assert [field.tag for field in fields] == [0, 1]


@pytest.mark.parametrize(("section", "count"), [("", 1), ("00", 1), ("0000", 2), ("80", 1)])
def test_a_section_that_ends_early_is_an_index_error(section: str, count: int) -> None:
    with pytest.raises(IndexError):
        read(section, count)


def test_limits_on_both_sides() -> None:
    assert len(read("00000100", 2, values=2, max_tags=2)[0]) == 2
    with pytest.raises(DecodeError, match="at most 1"):
        read("00000100", 2, max_tags=1)
    with pytest.raises(DecodeError, match="number of values"):
        read("00000100", 2, values=1)


def test_messages_tell_null_from_too_long() -> None:
    assert "serialized as null" in str(length_out_of_bounds("Topic.name", -1, 5))
    assert "claims 9 bytes" in str(length_out_of_bounds("Topic.name", 9, 5))
    assert "serialized as null" in str(count_out_of_bounds("Request.topics", -1, 5))
    assert "claims 9 elements, but there are only 5 bytes" in str(count_out_of_bounds("Request.topics", 9, 5))
