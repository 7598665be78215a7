"""A sequence whose items are made when they are read, from those of another.

What a request of one megabyte names, in other types, would need 20 MB as a list, and so would the answer about it. An
answer's array may be such a sequence: the encoder reads its elements once, one after the other, and asks for their
number before.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Iterator, MutableSequence, Sequence
from itertools import chain, islice
from typing import Final, Generic, TypeVar, cast, overload

S = TypeVar("S")
T = TypeVar("T")
U = TypeVar("U")


class ReadInOrder(Sequence[T]):
    """A sequence that is mostly read from its beginning to its end. A single element may take as long as those before
    it.
    """

    __slots__ = ()

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: int | slice) -> T | list[T]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"{index} of {len(self)} elements")
        return self._nth(number)

    def _nth(self, number: int) -> T:
        return next(islice(iter(self), number, None))


class InOrder(ReadInOrder[T]):
    """The items of collections, one after the other. The collections must not change meanwhile."""

    __slots__ = ("_collections",)

    def __init__(self, *collections: Collection[T]) -> None:
        self._collections = collections

    def __len__(self) -> int:
        return sum(map(len, self._collections))

    def __iter__(self) -> Iterator[T]:
        return chain.from_iterable(self._collections)


class Mapped(ReadInOrder[T]):
    """`make(item)` for each item of `source`, made anew each time. The source must not change meanwhile."""

    __slots__ = ("_make", "_source")

    def __init__(self, make: Callable[[S], T], source: Sequence[S]) -> None:
        self._make: Callable[[S], T] = make
        self._source: Sequence[S] = source

    def __len__(self) -> int:
        return len(self._source)

    def __iter__(self) -> Iterator[T]:
        return map(self._make, self._source)

    def _nth(self, number: int) -> T:
        return self._make(self._source[number])


class Zipped(ReadInOrder[T], Generic[S, U, T]):
    """`make(named, outcome)` for each thing that a request names and what came of it, mostly one of few objects.

    Both sequences have the same length and must not change meanwhile.
    """

    __slots__ = ("_make", "_named", "_outcomes")

    def __init__(self, make: Callable[[S, U], T], named: Sequence[S], outcomes: Sequence[U]) -> None:
        self._make: Callable[[S, U], T] = make
        self._named = named
        self._outcomes = outcomes

    def __len__(self) -> int:
        return len(self._outcomes)

    def __iter__(self) -> Iterator[T]:
        return map(self._element, self._named, self._outcomes)

    def _nth(self, number: int) -> T:
        return self._element(self._named[number], self._outcomes[number])

    def _element(self, named: S, outcome: U) -> T:
        return self._make(named, outcome)


class Pairs(Zipped[S, U, T]):
    """The same, of lists that grow."""

    __slots__ = ()

    _named: list[S]
    _outcomes: MutableSequence[U]

    def __init__(self, make: Callable[[S, U], T]) -> None:
        super().__init__(make, [], [])

    def add(self, named: S, outcome: U) -> None:
        self._named.append(named)
        self._outcomes.append(outcome)

    def extend(self, others: Pairs[S, U, T]) -> None:
        """Their `make` must be the same."""
        self._named += others._named
        self._outcomes.extend(others._outcomes)


SMALL: Final = 64
"""Elements whose codes are compared in one go."""

_WHOLE: Final = -(1 << 15)
"""In place of an error code: no error has this one."""


class Outcomes(Pairs["S | T", int, T], Generic[S, T]):
    """The elements of an answer of which most say no more than what the request names and an error code.

    Those need ten bytes each until they are read, where an element has 60 to 150. The names are objects of the request.
    """

    __slots__ = ()

    def __init__(self, make: Callable[[S, int], T]) -> None:
        """`make(named, code)` is the element."""
        super().__init__(cast("Callable[[S | T, int], T]", make))
        self._outcomes = array("h")

    def append(self, element: T) -> None:
        """One that says more."""
        self.add(element, _WHOLE)

    def replace(self, index: int, element: T) -> None:
        """By one that says more."""
        self._named[index], self._outcomes[index] = element, _WHOLE

    @property
    def whole(self) -> Iterator[T]:
        """The elements that say more."""
        return (cast("T", named) for named, code in zip(self._named, self._outcomes, strict=True) if code == _WHOLE)

    def smaller(self) -> Sequence[T]:
        """The same for a sequence that is complete: if all elements say one code, in a third of the memory."""
        codes = self._outcomes
        if len(codes) > SMALL or len(set(codes)) != 1 or codes[0] == _WHOLE:
            return self
        return OneOutcome(self._make, tuple(self._named), codes[0])

    def _element(self, named: S | T, outcome: int) -> T:
        return cast("T", named) if outcome == _WHOLE else self._make(named, outcome)


class OneOutcome(ReadInOrder[T], Generic[S, T]):
    """The elements of which all say the same code: `make(named, code)` for each."""

    __slots__ = ("_code", "_make", "_named")

    def __init__(self, make: Callable[[S, int], T], named: tuple[S, ...], code: int) -> None:
        self._make: Callable[[S, int], T] = make
        self._named = named
        self._code = code

    def __len__(self) -> int:
        return len(self._named)

    def __iter__(self) -> Iterator[T]:
        make, code = self._make, self._code
        return (make(named, code) for named in self._named)

    @property
    def whole(self) -> Iterator[T]:
        """As that of `Outcomes`."""
        return iter(())
