from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinator.partitioning import java_string_hash, partition_for


@pytest.mark.parametrize(
    ("key", "partition"),
    [
        ("consumerGroupId", 20),
        ("test-consumer-group", 31),
        ("my-group", 12),
        ("g", 3),
        ("console-consumer-1", 24),
        ("tx", 16),
        ("", 0),
    ],
)
def test_partition_of_fifty(key: str, partition: int) -> None:
    assert partition_for(key, 50) == partition


def test_hash_is_javas() -> None:
    assert java_string_hash("my-group") == -1906497762
    assert java_string_hash("hello") == 99162322


def test_hash_counts_utf16_units() -> None:
    # U+1F600 is the two units D83D DE00 in Java.
    assert java_string_hash("\U0001f600") == 31 * 0xD83D + 0xDE00
    assert java_string_hash("ä") == 0xE4


def test_the_number_without_a_counterpart_becomes_zero() -> None:
    text = "polygenelubricants"  # known to hash to -2^31
    assert java_string_hash(text) == -(2**31)
    assert partition_for(text, 50) == 0


@given(st.text())
def test_ascii_short_cut_agrees_with_the_general_way(text: str) -> None:
    expected = 0
    encoded = text.encode("utf-16-be")
    for high, low in zip(encoded[::2], encoded[1::2], strict=True):
        expected = (31 * expected + (high << 8 | low)) % 2**32
    assert java_string_hash(text) % 2**32 == expected
    assert -(2**31) <= java_string_hash(text) < 2**31


@given(st.text(), st.integers(1, 1000))
def test_partition_is_one_of_them(key: str, count: int) -> None:
    assert 0 <= partition_for(key, count) < count
