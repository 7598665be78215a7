from __future__ import annotations

import pytest

from odradek.protocol.java_split import java_split, java_trim


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("a", ["a"]),
        ("a,b", ["a", "b"]),
        ("a,b,,", ["a", "b"]),
        (",a", ["", "a"]),
        ("a,,b", ["a", "", "b"]),
        ("", [""]),
        (",", []),
        (",,", []),
    ],
)
def test_parts_are_those_of_java(text: str, parts: list[str]) -> None:
    assert java_split(text) == parts
    assert java_split(text.replace(",", "."), ".") == parts


@pytest.mark.parametrize(
    ("text", "trimmed"),
    [
        (" \t\r\n5 ", "5"),
        ("\x00\x01\x08\x0e\x1b5\x1f", "5"),
        ("a b", "a b"),
        ("\x7f5", "\x7f5"),
        *((f"{blank}5{blank}", f"{blank}5{blank}") for blank in "\x85\xa0\u1680\u2003\u2028\u202f\u205f\u3000"),
        (" \x00", ""),
    ],
)
def test_what_java_trims(text: str, trimmed: str) -> None:
    assert java_trim(text) == trimmed
