from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.controller.znodes.znode_json import (
    BadZnode,
    encode,
    int_in,
    ints,
    json_object,
    list_in,
    long_in,
    parse,
    partition_in,
    str_in,
)
from odradek.protocol.topic_partition import TopicPartition

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(SCALARS, lambda value: st.lists(value, max_size=3) | st.dictionaries(TEXT, value, max_size=3))


@given(st.dictionaries(TEXT, VALUES, max_size=4))
def test_what_is_written_is_read(node: dict[str, object]) -> None:
    assert json_object(encode(node), "/n") == node


def test_bytes_are_those_of_kafka() -> None:
    """Jackson puts no spaces between, keeps the order of the keys and writes UTF-8, control characters escaped."""
    assert (
        encode({"version": 1, "b": ["é", None, True], "a": {}}) == '{"version":1,"b":["é",null,true],"a":{}}'.encode()
    )
    assert encode({"a": "\x1f\n\\u001f", "b": [1, None]}) == rb'{"a":"\u001F\n\\u001f","b":[1,null]}'


@pytest.mark.parametrize("data", [None, b"", b"{", b"\xff\xfe\xfd", b"nonsense", b"[" * 200_000])
def test_what_is_no_json_reads_as_nothing(data: bytes | None) -> None:
    assert parse(data) is None


@given(st.binary(max_size=20))
def test_any_bytes_are_json_or_nothing(data: bytes) -> None:
    found = parse(data)
    try:
        expected = json.loads(data)
    except ValueError:
        return
    assert repr(found) == repr(expected)


@pytest.mark.parametrize("behind", [b"", b" ", b"}", b" x", b"{", b"\n\x00"])
def test_what_follows_the_value_is_ignored(behind: bytes) -> None:
    assert parse(b' \n{"version":1}' + behind) == {"version": 1}


@pytest.mark.parametrize("data", [None, b"", b"[]", b"1", b'"x"', b"null", b"{"])
def test_node_that_holds_no_object_is_named(data: bytes | None) -> None:
    with pytest.raises(BadZnode, match=r"^/brokers/ids/1 does not hold a JSON object: "):
        json_object(data, "/brokers/ids/1")


def test_numbers() -> None:
    assert int_in({"a": -1}, "a") == -1
    assert int_in({}, "a", 5) == 5
    assert int_in({"a": 0}, "a", 5) == 0
    for limit in (2**31, 2**63):
        for number in (-limit, limit - 1):
            assert long_in({"a": number}, "a") == number


@pytest.mark.parametrize("value", ["1", 1.0, None, True, [1], 2**63, -(2**63) - 1])
def test_what_is_not_a_number_is_named(value: object) -> None:
    for read in (int_in, long_in):
        with pytest.raises(BadZnode, match=r"^epoch is .*, not a number$"):
            read({"epoch": value}, "epoch")


@pytest.mark.parametrize("number", [2**31, -(2**31) - 1])
def test_number_for_which_requests_have_no_room_is_refused(number: int) -> None:
    with pytest.raises(BadZnode, match=r"^epoch is .*, not a number$"):
        int_in({"epoch": number}, "epoch")
    with pytest.raises(TypeError, match="is not a list of numbers"):
        ints([1, number])


def test_number_that_is_missing_is_named() -> None:
    with pytest.raises(BadZnode, match=r"^epoch is None, not a number$"):
        int_in({}, "epoch")


def test_strings_and_lists() -> None:
    assert str_in({"a": ""}, "a") == ""
    assert list_in({"a": []}, "a") == []


@pytest.mark.parametrize("node", [{}, {"a": None}, {"a": 1}, {"a": {}}])
def test_what_is_neither_string_nor_list_is_named(node: dict[str, object]) -> None:
    with pytest.raises(BadZnode, match=r"^a is .*, not a string$"):
        str_in(node, "a")
    with pytest.raises(BadZnode, match=r"^a is .*, not a list$"):
        list_in(node, "a")


def test_lists_of_numbers() -> None:
    assert ints([]) == ()
    assert ints([2, 1]) == (2, 1)


@pytest.mark.parametrize("value", [None, 1, "12", {"1": 2}, [1, "2"], [1, None], [True]])
def test_what_is_no_list_of_numbers_is_refused(value: object) -> None:
    with pytest.raises(TypeError, match="is not a list of numbers"):
        ints(value)


def test_partitions() -> None:
    assert partition_in({"topic": "t", "partition": 3, "replicas": [1]}) == TopicPartition("t", 3)


@pytest.mark.parametrize(
    "item", [None, "t-3", ["t", 3], {"topic": "t"}, {"partition": 3}, {"topic": 3, "partition": "t"}]
)
def test_what_is_no_partition_is_named(item: object) -> None:
    with pytest.raises(BadZnode):
        partition_in(item)
