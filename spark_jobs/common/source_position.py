"""Where a record came from, as a header: `topic:partition:offset`. Readers remove duplicates by it."""

from __future__ import annotations

from typing import NamedTuple

SOURCE_HEADER = "odradek.source"


class SourcePosition(NamedTuple):
    """The place of a record in the topic that it was read from."""

    topic: str
    partition: int
    offset: int

    def header(self) -> bytes:
        """The value of the header."""
        return f"{self.topic}:{self.partition}:{self.offset}".encode()
