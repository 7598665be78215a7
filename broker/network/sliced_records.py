"""Records that do not exist yet when their answer begins: they are made slice by slice while it is sent.

Kafka: the BaseRecords that are not in a file: LazyDownConversionRecords.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class SlicedRecords:
    """Records of one partition; `remaining` of their `size_in_bytes` have still to be made.

    A class and no protocol: `ResponseSender` tells them from regions of files by it, for each part of each answer.
    """

    __slots__ = ("remaining", "size_in_bytes")

    size_in_bytes: int
    remaining: int

    def retain(self) -> None:
        """They will be sent: keep what they are made of."""

    def release(self) -> None:
        """They are sent, or will not be."""

    def next_slice(self, done: Callable[[bytes | OSError], None]) -> None:
        """Call `done` with the next bytes of the `remaining` ones, now or later."""
