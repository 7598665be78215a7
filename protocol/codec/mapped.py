"""A sequence whose items are made when they are read, from those of another.

What a request of one megabyte names, in other types, would need 20 MB as a list, and so would the answer about it. An
answer's array may be such a sequence: the encoder reads its elements once, one after the other, and asks for their
number before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar, overload

S = TypeVar("S")
T = TypeVar("T")


class Mapped(Sequence[T]):
    """`make(item)` for each item of `source`, made anew each time. The source must not change meanwhile."""

    __slots__ = ("_make", "_source")

    def __init__(self, make: Callable[[S], T], source: Sequence[S]) -> None:
        self._make: Callable[[S], T] = make
        self._source: Sequence[S] = source

    def __len__(self) -> int:
        return len(self._source)

    def __iter__(self) -> Iterator[T]:
        return map(self._make, self._source)

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return list(map(self._make, self._source[index]))
        return self._make(self._source[index])
