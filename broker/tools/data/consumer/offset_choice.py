"""Where a consumer begins and ends: the argument of `--offset` (`-o`).

beginning, earliest, end, latest, stored, N (an offset), -N (N records before the end),
s@MS or @MS (the first record of that time or later), e@MS (ends before the first record of that time)
"""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple

from odradek.protocol.records.layout import MAX_INT64


class Origin(Enum):
    """What an offset counts from."""

    BEGINNING = "beginning"
    END = "end"
    STORED = "stored"
    OFFSET = "offset"
    TAIL = "tail"
    """That many records before the end."""
    TIMESTAMP = "timestamp"


class OffsetChoice(NamedTuple):
    """An origin, and its number: an offset, a count, or milliseconds."""

    origin: Origin
    number: int = 0


BEGINNING = OffsetChoice(Origin.BEGINNING)
END = OffsetChoice(Origin.END)
STORED = OffsetChoice(Origin.STORED)
_NAMES = {"beginning": BEGINNING, "earliest": BEGINNING, "end": END, "latest": END, "stored": STORED}


def parse_offset(text: str) -> tuple[OffsetChoice | None, int | None]:
    """Where to begin, and the timestamp (ms) to end at; one of the two is None. Raises: ValueError."""
    named = _NAMES.get(text.lower())
    if named is not None:
        return named, None
    prefix, at, rest = text.partition("@")
    if at and prefix in ("", "s", "e"):
        timestamp = _number(rest, text)
        return (None, timestamp) if prefix == "e" else (OffsetChoice(Origin.TIMESTAMP, timestamp), None)
    if text.startswith("-"):
        return OffsetChoice(Origin.TAIL, _number(text[1:], text)), None
    return OffsetChoice(Origin.OFFSET, _number(text, text)), None


def _number(digits: str, text: str) -> int:
    if not digits.isascii() or not digits.isdigit() or int(digits) > MAX_INT64:
        raise ValueError(
            f"The provided offset value '{text}' is incorrect. Valid values are 'earliest', 'latest', 'beginning', "
            "'end', 'stored', an offset, -N (N records before the end), s@MS and e@MS (milliseconds since 1970)"
        )
    return int(digits)
