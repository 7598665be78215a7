from __future__ import annotations

import os

import pytest

from odradek.broker.tools.dump_log.java_text import (
    absolute_path,
    file_path,
    java_int,
    java_string,
    optional_long,
    parse_long,
)


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"gr\xc3\xbcn", "grün"),
        (b"\xff\xc3", "��"),
        (b"\xed\xa0\x80x", "�x"),
        (b"\xed\xa0", "�"),
        (b"\xe0\x80", "��"),
        (b"\xf0\x9f\xa7\xb5", "🧵"),
    ],
)
def test_invalid_utf_8_is_replaced_as_java_does(data: bytes, text: str) -> None:
    assert java_string(data) == text


def test_optional_longs() -> None:
    assert optional_long(None) == "OptionalLong.empty"
    assert optional_long(0) == "OptionalLong[0]"


@pytest.mark.parametrize(("text", "number"), [("00000000000000000041", 41), ("-1", -1), ("+5", 5)])
def test_numbers(text: str, number: int) -> None:
    assert parse_long(text) == number


@pytest.mark.parametrize("text", ["", "x1", "1_000", " 1", "١"])
def test_invalid_number(text: str) -> None:
    with pytest.raises(ValueError, match="For input string"):
        parse_long(text)


@pytest.mark.parametrize(("number", "kept"), [(2**31 - 1, 2**31 - 1), (2**31, -(2**31)), (-1, -1), (2**32 + 5, 5)])
def test_numbers_wrap_at_32_bits(number: int, kept: int) -> None:
    assert java_int(number) == kept


@pytest.mark.parametrize(("text", "path"), [("a//b/", "a/b"), ("/", "/"), ("./a/../b", "./a/../b"), ("//a", "/a")])
def test_paths_are_printed_as_file_does(text: str, path: str) -> None:
    assert file_path(text) == path


def test_an_absolute_path_is_not_resolved() -> None:
    assert absolute_path("/x/../y") == "/x/../y"
    assert absolute_path("../y") == f"{os.getcwd()}/../y"
