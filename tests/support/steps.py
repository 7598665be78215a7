"""Work in steps, done in one go."""

from __future__ import annotations

from collections.abc import Generator
from typing import TypeVar

T = TypeVar("T")


def value_of(steps: Generator[object, None, T]) -> T:
    """What the generator returns in the end."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
