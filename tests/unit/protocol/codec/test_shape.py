"""What a shape encodes is what the encoder of the message writes for the same values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.codec.codec import EncodeError, encode
from odradek.protocol.codec.schema import (
    Message,
    Struct,
    array,
    boolean,
    byte_string,
    int8,
    int16,
    int64,
    string,
    struct,
)
from odradek.protocol.codec.shape import Each, Shape


class Inner(Struct):
    number: int = int16("0+")
    text: str = string("0+")
    flag: bool = boolean("1+", default=True, ignorable=True)


class Defaults(Struct):
    number: int = int64("0+", default=-1)
    nothing: str | None = string("0+", nullable="0+", default=None)


class Outer(Message, versions="0-2", flexible="1+"):
    first: int = int8("0+", default=3)
    zero: int = int64("0+")
    empty: str = string("0+")
    nothing: str | None = string("0+", nullable="0+", default=None)
    data: bytes = byte_string("0+")
    none: list[Inner] | None = array(Inner, "0+", nullable="0+", default=None)
    inside: Defaults = struct(Defaults, "0+")
    inners: list[Inner] = array(Inner, "0+")
    late: int = int16("2+", ignorable=True)
    needed: int = int16("2+")
    last: int = int64("0+", default=-1)
    extra: int = int64("1+", tag=0, tagged="1+")


SHAPE = Shape(
    Outer,
    "given, late, pairs",
    {
        "zero": "given",
        "late": "late",
        "inners": Each("number, text", "pairs", {"number": "number + 1", "text": "text"}),
    },
)


@pytest.mark.parametrize("version", range(3))
@given(
    given_number=st.integers(-(2**63), 2**63 - 1),
    pairs=st.lists(st.tuples(st.integers(-5, 5), st.text(max_size=200)), max_size=3),
)
def test_the_bytes_are_those_of_the_message(version: int, given_number: int, pairs: list[tuple[int, str]]) -> None:
    pieces: list[bytes] = []
    SHAPE.encoder(version)(given_number, 7, pairs, pieces)
    inners = [Inner(number=number + 1, text=text) for number, text in pairs]
    assert b"".join(pieces) == encode(Outer(zero=given_number, late=7, inners=inners), version)


def test_long_arrays_and_texts_have_long_lengths() -> None:
    pairs = [(0, "x" * 300)] * 200
    pieces: list[bytes] = []
    SHAPE.encoder(1)(0, 0, pairs, pieces)
    assert b"".join(pieces) == encode(Outer(inners=[Inner(number=1, text=text) for _, text in pairs]), 1)


def test_an_encoder_is_compiled_once() -> None:
    assert SHAPE.encoder(2) is SHAPE.encoder(2) is SHAPE.encoders[2]


@pytest.mark.parametrize(("field", "version"), [("needed", 0), ("needed", 1), ("extra", 1)])
def test_what_a_version_has_not_and_tagged_fields_are_no_shape(field: str, version: int) -> None:
    shape = Shape(Outer, "value", {field: "value"})
    with pytest.raises(EncodeError, match=f"version {version} has no such shape"):
        shape.encoder(version)
