from __future__ import annotations

import pytest

from odradek.broker.tools.data.consumer.offset_choice import BEGINNING, END, STORED, OffsetChoice, Origin, parse_offset


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("beginning", BEGINNING),
        ("Earliest", BEGINNING),
        ("end", END),
        ("latest", END),
        ("stored", STORED),
        ("17", OffsetChoice(Origin.OFFSET, 17)),
        ("-5", OffsetChoice(Origin.TAIL, 5)),
        ("@1700", OffsetChoice(Origin.TIMESTAMP, 1700)),
        ("s@1700", OffsetChoice(Origin.TIMESTAMP, 1700)),
    ],
)
def test_where_to_begin(text: str, choice: OffsetChoice) -> None:
    assert parse_offset(text) == (choice, None)


def test_where_to_end() -> None:
    assert parse_offset("e@1700") == (None, 1700)


@pytest.mark.parametrize("text", ["", "-", "x", "@", "e@x", "1.5", "--1", "٣", str(2**63), "x@1"])
def test_what_is_no_offset(text: str) -> None:
    with pytest.raises(ValueError, match="is incorrect"):
        parse_offset(text)
