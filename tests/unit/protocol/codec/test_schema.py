from __future__ import annotations

import copy
import pickle

import pytest

from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.codec.schema import (
    INT32,
    Message,
    RawTaggedField,
    Records,
    Struct,
    array,
    boolean,
    byte_string,
    float64,
    int16,
    int32,
    record_set,
    string,
    struct,
    uuid,
)


class Inner(Struct):
    number: int = int32("0+", default=-1)
    names: list[int] = array(INT32, "0+")


class Outer(Message, versions="0-3", flexible="2+"):
    flag: bool = boolean("0+", default=True)
    ratio: float = float64("0+")
    error_code: int = int16("0+")
    text: str = string("0+")
    note: str | None = string("1+", nullable="1+", default=None, ignorable=True)
    blob: bytes = byte_string("0+")
    topic_id: bytes = uuid("2+", tag=0, tagged="2+")
    inner: Inner = struct(Inner, "0+")
    maybe: Inner | None = struct(Inner, "2+", nullable="2+", default=None)
    inners: list[Inner] = array(Inner, "0+")
    nothing: list[Inner] | None = array(Inner, "0+", nullable="1+", default=None)
    records: Records | None = record_set("0+", nullable="0+")


def test_every_field_starts_with_its_default() -> None:
    value = Outer()
    assert value.flag is True
    assert (value.ratio, value.error_code, value.text, value.note, value.blob) == (0.0, 0, "", None, b"")
    assert value.topic_id == ZERO_UUID
    assert value.inner == Inner(number=-1, names=[])
    assert (value.maybe, value.inners, value.nothing, value.records) == (None, [], None, None)
    assert value.unknown_tagged_fields is None


def test_defaults_are_not_shared() -> None:
    one, other = Outer(), Outer()
    one.inner.number = 7
    one.inner.names.append(1)
    one.inners.append(Inner())
    assert other == Outer()


def test_fields_are_keywords_only_and_known() -> None:
    with pytest.raises(TypeError):
        Outer(True)  # type: ignore[misc]
    with pytest.raises(TypeError, match="txet"):
        Outer(txet="")  # type: ignore[call-arg]


def test_instances_have_slots_and_no_dictionary() -> None:
    with pytest.raises(AttributeError):
        Outer().tetx = ""  # type: ignore[attr-defined]


def test_equality_is_by_value_and_by_type() -> None:
    class Twin(Struct):
        number: int = int32("0+", default=-1)
        names: list[int] = array(INT32, "0+")

    assert Inner(number=1) == Inner(number=1)
    assert Inner(number=1) != Inner(number=2)
    assert Inner() != Twin()
    with pytest.raises(TypeError):
        hash(Inner())


def test_equality_counts_retained_tags_and_not_how_their_absence_is_written() -> None:
    one, other = Inner(), Inner()
    one.unknown_tagged_fields = []  # type: ignore[misc]
    assert one == other
    one.unknown_tagged_fields = [RawTaggedField(5, b"x")]  # type: ignore[misc]
    assert one != other


def test_repr_shows_the_fields_in_order() -> None:
    assert repr(Inner(number=3)) == "Inner(number=3, names=[])"
    value = Inner()
    value.unknown_tagged_fields = [RawTaggedField(5, b"x")]  # type: ignore[misc]
    assert repr(value).endswith("unknown_tagged_fields=[RawTaggedField(tag=5, data=b'x')])")


def test_repr_shows_the_size_of_bytes_and_not_their_contents() -> None:
    shown = repr(Outer(blob=b"password", records=memoryview(bytes(500)), topic_id=b"0123456789abcdef"))
    assert "blob=<8 bytes>" in shown
    assert "records=<500 bytes>" in shown
    assert "password" not in shown


def test_copies_are_independent() -> None:
    value = Outer(text="a", inners=[Inner(number=1)])
    twin = copy.deepcopy(value)
    assert twin == value
    twin.inners[0].number = 2
    assert value.inners[0].number == 1
    assert pickle.loads(pickle.dumps(value)) == value
