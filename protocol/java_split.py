"""Lists in configs and on command lines, which Apache Kafka splits with Java's `String.split`."""

from __future__ import annotations


def java_split(text: str, separator: str = ",") -> list[str]:
    """The parts between separators of one character. Those at the end that are empty are left out: `0,1,` is `0,1`, and
    `,` has no part. An empty text is one empty part.
    """
    if not text:
        return [""]
    kept = text.rstrip(separator)
    return kept.split(separator) if kept else []
