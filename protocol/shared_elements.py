"""Arrays in which equal elements that follow each other are one object.

A request of one megabyte may name the same thing 500,000 times. An answer of its own has 100 bytes and more; for one
that is the same as the one before 8 suffice, those of a reference. Elements are compared in one go, so they must be
short themselves. Nobody may change them afterwards.

Kafka needs nothing like it: its heap is large.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from typing import TypeVar

T = TypeVar("T")


def append_shared(elements: list[T], element: T, inner: Sized = ()) -> None:
    """Append `element`; if the last one is equal, that one once more. `inner`: the array that is part of the element;
    only elements where it is empty are compared.
    """
    if not inner and elements and elements[-1] == element:
        element = elements[-1]
    elements.append(element)


def shared(elements: Iterable[T]) -> Iterator[T]:
    """The elements; in place of one that is equal to the one before it, that one once more."""
    last: list[T] = []
    for element in elements:
        if not last or last[0] != element:
            last = [element]
        yield last[0]
