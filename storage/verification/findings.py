"""One problem found in a file."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias


class Finding(NamedTuple):
    """A file, a position in it (None: the whole file) and a description of the problem in one line."""

    path: str
    position: int | None
    message: str

    def __str__(self) -> str:
        place = self.path if self.position is None else f"{self.path}:{self.position}"
        return f"{place}: {' '.join(self.message.split())}"


Report: TypeAlias = Callable[[Finding], object]
