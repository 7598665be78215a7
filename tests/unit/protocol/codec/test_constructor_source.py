from __future__ import annotations

import inspect

import pytest

from odradek.protocol.codec.constructor_source import compile_constructor, constructor_lines, default_source
from odradek.protocol.codec.schema import INT32, Struct, array, int32, string, struct
from odradek.protocol.messages.fetch import EpochEndOffset, PartitionData


class Inner(Struct):
    number: int = int32("0+", default=-1)


class Middle(Struct):
    inner: Inner = struct(Inner, "0+")
    numbers: list[int] = array(INT32, "0+")


class Outer(Struct):
    middle: Middle = struct(Middle, "0+")
    maybe: Middle | None = struct(Middle, "0+", nullable="0+", default=None)
    text: str = string("0+", default="none")


class Empty(Struct):
    pass


def test_a_class_gets_its_constructor_with_the_first_instance() -> None:
    class Late(Struct):
        number: int = int32("0+")

    generic = Late.__init__
    Late()
    assert Late.__init__ is not generic
    assert list(inspect.signature(Late).parameters) == ["number"]
    assert Late(number=3).number == 3


def test_structs_in_structs_get_their_defaults() -> None:
    value = Outer()
    assert value.middle.inner.number == -1
    assert value.middle.numbers == []
    assert value.middle.inner.unknown_tagged_fields is None
    assert value.maybe is None
    assert Outer(middle=Middle(numbers=[1])).middle.numbers == [1]


def test_a_given_list_is_kept_and_not_copied() -> None:
    numbers = [1]
    assert Middle(numbers=numbers).numbers is numbers


def test_a_struct_without_fields() -> None:
    assert Empty() == Empty()
    with pytest.raises(TypeError):
        Empty(a=1)  # type: ignore[call-arg]


def test_generated_statements_make_the_same_instance_as_the_constructor() -> None:
    names: dict[str, object] = {"new": object.__new__, "value": object.__new__(PartitionData)}
    exec("\n".join(constructor_lines(PartitionData.FIELDS, "value", names)), names)
    assert names["value"] == PartitionData()
    assert names["EpochEndOffset"] is EpochEndOffset


def test_defaults_as_source() -> None:
    assert [default_source(field) for field in Outer.FIELDS[1:]] == ["None", "'none'"]
    assert default_source(Middle.FIELDS[1]) == "[]"


def test_compiling_twice_is_harmless() -> None:
    compile_constructor(Inner)
    compile_constructor(Inner)
    assert Inner().number == -1
