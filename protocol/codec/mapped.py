"""A sequence whose items are made when they are read, from those of another.

What a request of one megabyte names, in other types, would need 20 MB as a list, and so would the answer about it. An
answer's array may be such a sequence: the encoder reads its elements once, one after the other, and asks for their
number before.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar, overload

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


class Outcomes(Generic[S]):
    """The error code of each thing that a request names: ten bytes, where an element of the answer has 60 to 150.

    The things are objects of the request, so that they need a reference each.
    """

    __slots__ = ("_codes", "_named")

    def __init__(self) -> None:
        self._named: list[S] = []
        self._codes = array("h")

    def add(self, named: S, code: int) -> None:
        self._named.append(named)
        self._codes.append(code)

    def extend(self, others: Outcomes[S]) -> None:
        self._named += others._named
        self._codes += others._codes

    def answers(self, make: Callable[[S, int], T]) -> Mapped[T]:
        """`make(named, code)` for each, in the order of the additions, of which there must be no more."""
        return Mapped(lambda place: make(self._named[place], self._codes[place]), range(len(self._codes)))
