from __future__ import annotations

import crc32c as package
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.records import checksum
from odradek.protocol.records.checksum import crc32c


def test_check_string() -> None:
    assert crc32c(b"123456789", 0, 0) == 0xE3069283


def test_takes_any_buffer() -> None:
    data = b"some bytes"
    assert crc32c(bytearray(data), 0, 0) == crc32c(memoryview(data), 0, -1) == crc32c(data, 0, 0)


@given(st.binary(), st.binary())
def test_continues_from_a_previous_checksum(head: bytes, tail: bytes) -> None:
    assert crc32c(tail, crc32c(head, 0, 0), 0) == package.crc32c(head + tail)


def test_without_its_extension_module_the_package_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checksum.PathFinder, "find_spec", lambda *_: None)
    assert checksum._load() is package.crc32c
