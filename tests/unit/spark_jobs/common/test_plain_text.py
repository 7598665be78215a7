from __future__ import annotations

import pytest

from spark_jobs.common.plain_text import key_text, size_text, table


def test_a_table_has_text_to_the_left_and_numbers_to_the_right() -> None:
    assert table([["orders", "1,200"], ["x", "3"]], ("topic", "records"), left=1) == [
        "topic   records",
        "orders    1,200",
        "x             3",
    ]
    assert table([], ("a", "b")) == ["a  b"]


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1_023, "1,023 B"), (1_024, "1.0 KiB"), (1_536 * 1_024, "1.5 MiB"), (5_000 * 2**40, "5,000.0 TiB")],
)
def test_a_size_is_a_number_with_a_unit(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (None, "(no key)"),
        (b"", '""'),
        ("ä 1".encode(), '"ä 1"'),
        (b"\x00\x01", "0x0001"),
        (b"\xff", "0xff"),
        (b"x" * 41, f'"{"x" * 40}..."'),
    ],
)
def test_a_key_is_text_or_hexadecimal(key: bytes | None, text: str) -> None:
    assert key_text(key) == text
