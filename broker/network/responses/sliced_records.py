"""Records that are made slice by slice while their response is sent.

Kafka: LazyDownConversionRecords.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class SlicedRecords:
    """Records of one partition; `remaining` of their `size_in_bytes` are not made yet.

    A class and no Protocol: `ResponseSender` checks by isinstance whether a part is one, for each part of a response.
    """

    __slots__ = ("remaining", "size_in_bytes")

    size_in_bytes: int
    remaining: int

    def retain(self) -> None:
        """The records will be sent: keep their source."""

    def release(self) -> None:
        """The records are sent or dropped: release their source."""

    def next_slice(self, done: Callable[[bytes | OSError], None]) -> None:
        """Call `done` with the next bytes of the `remaining` ones, now or later."""
