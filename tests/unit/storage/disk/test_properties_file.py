from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.storage.disk.properties_file import parse_properties, read_properties


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a=b", {"a": "b"}),
        ("a:b", {"a": "b"}),
        ("a b", {"a": "b"}),
        ("  a \t = \t b ", {"a": "b "}),
        ("a = = b", {"a": "= b"}),
        ("a", {"a": ""}),
        ("a=", {"a": ""}),
        ("=b", {"": "b"}),
        ("# comment\n! another\n\n   # indented\na=b", {"a": "b"}),
        ("a=b # no comment", {"a": "b # no comment"}),
        ("a=1\na=2", {"a": "2"}),
        ("a=1\r\nb=2\rc=3", {"a": "1", "b": "2", "c": "3"}),
        ("a=one,\\\n    two", {"a": "one,two"}),
        ("a=one\\\\\nb=2", {"a": "one\\", "b": "2"}),
        ("a=one\\\n\\\n  two", {"a": "onetwo"}),
        ("a=one\\\n# no comment", {"a": "one# no comment"}),
        ("a=one\\", {"a": "one"}),
        ("a\\=b\\:c\\ d=e", {"a=b:c d": "e"}),
        ("a=\\t\\n\\r\\f\\x\\\\", {"a": "\t\n\r\fx\\"}),
        ("a=\\u00e9\\u4e2d", {"a": "\u00e9\u4e2d"}),
        ("a=\\ud83d\\ude00 \\ud83d", {"a": "\U0001f600 \ufffd"}),
        ("listeners=PLAINTEXT://:9092", {"listeners": "PLAINTEXT://:9092"}),
        ("ключ=значение", {"ключ": "значение"}),
    ],
)
def test_as_java_reads_it(text: str, expected: dict[str, str]) -> None:
    assert parse_properties(text) == expected


def test_a_file_is_in_latin_1(tmp_path: Path) -> None:
    path = tmp_path / "a.properties"
    path.write_bytes("# Grüße\r\na=\u00fc\n".encode("iso-8859-1") + "b=ü\\u4e2d".encode())
    assert read_properties(path) == {"a": "ü", "b": "Ã¼中"}


def test_broken_escape_is_refused() -> None:
    with pytest.raises(ValueError, match="Malformed"):
        parse_properties("a=\\u12")


def escaped(text: str, *, is_key: bool) -> str:
    out = ""
    for index, char in enumerate(text):
        if char in "\\=:#!" or (char in " \t\f" and (is_key or index == 0)):
            out += "\\" + {"\t": "t", "\f": "f"}.get(char, char)
        elif char in "\r\n":
            out += {"\r": "\\r", "\n": "\\n"}[char]
        else:
            out += char
    return out


@given(st.dictionaries(st.text(min_size=1, max_size=10), st.text(max_size=20), max_size=5))
def test_what_was_escaped_is_read_back(properties: dict[str, str]) -> None:
    text = "\n".join(f"{escaped(key, is_key=True)}={escaped(value, is_key=False)}" for key, value in properties.items())
    assert parse_properties(text) == properties


@given(st.text(max_size=100))
def test_any_text_is_read_or_refused(text: str) -> None:
    if "\\u" in text:
        with contextlib.suppress(ValueError):
            parse_properties(text)
    else:
        parse_properties(text)
