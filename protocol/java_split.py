"""Texts and lists in configs and on command lines, which Apache Kafka reads with Java's `String.split` and `trim`."""

from __future__ import annotations

from typing import Final

_TRIMMED: Final = "".join(map(chr, range(0x21)))


def java_split(text: str, separator: str = ",") -> list[str]:
    """The parts between separators of one character. Those at the end that are empty are left out: `0,1,` is `0,1`, and
    `,` has no part. An empty text is one empty part.
    """
    if not text:
        return [""]
    kept = text.rstrip(separator)
    return kept.split(separator) if kept else []


def java_trim(text: str) -> str:
    """The text without the blanks and control characters around it: those up to U+0020.

    Python's `strip` leaves some of these, and removes blanks that are not ASCII, such as U+00A0.
    """
    return text.strip(_TRIMMED)
