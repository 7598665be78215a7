"""Lists of numbers on a command line: `0,1,2`."""

from __future__ import annotations

from odradek.protocol.java_split import java_split


def integers(text: str, separator: str = ",") -> list[int]:
    """The items, which are numbers, split as Apache's tools split them. Raises: ValueError."""
    return [int(item) for item in java_split(text, separator)]
