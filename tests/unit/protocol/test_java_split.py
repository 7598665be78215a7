from __future__ import annotations

import pytest

from odradek.protocol.java_split import java_split


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
