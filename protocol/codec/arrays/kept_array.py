"""An array of a response that is sent many times: its encoded elements are kept."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

T = TypeVar("T")

MAX_KEPT_VERSIONS: Final = 4
"""Of one array. Clients of one cluster rarely use more, and each version that is kept needs memory."""


class KeptArray(list[T]):
    """Elements that nobody changes after the array was made.

    The encoder of a field that is declared with `kept=True` keeps the bytes of all elements here, by version.
    """

    __slots__ = ("_encoded",)

    def __init__(self, elements: Iterable[T] = ()) -> None:
        super().__init__(elements)
        self._encoded: dict[int, bytes] = {}

    def encoded(self, version: int) -> bytes | None:
        """The elements in this version, or None if they are not kept."""
        return self._encoded.get(version)

    def keep(self, version: int, encoded: bytes) -> None:
        if len(self._encoded) >= MAX_KEPT_VERSIONS:
            self._encoded.clear()
        self._encoded[version] = encoded
