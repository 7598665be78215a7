from __future__ import annotations

import pytest

from odradek.broker.tools.data.records.packed_format import packed_format

# What kcat prints for each letter: tests/golden/test_kcat.py. The cases here are those where kcat reads other bytes.


def test_little_endian() -> None:
    assert packed_format("key", "<ihH>h")(b"\1\0\0\0\xff\xff\1\2\1\2") == b"1-1513258"
    assert packed_format("key", "<q$")((-5).to_bytes(8, "little", signed=True)) == b"-5"


def test_a_text_with_zero_bytes_is_whole() -> None:
    assert packed_format("value", "bs")(b"\1a\0b") == b"1a\0b"


def test_a_byte_that_is_not_there() -> None:
    with pytest.raises(ValueError, match="value truncated, expected 1 bytes to unpack c but only 0 bytes remaining"):
        packed_format("value", "cc")(b"a")


@pytest.mark.parametrize(("form", "error"), [("", "empty"), ("ix", "'x' is no letter"), ("avro", "schema registry")])
def test_formats_that_are_none(form: str, error: str) -> None:
    with pytest.raises(ValueError, match=error):
        packed_format("key", form)
