"""Which items are there more than once: for what a request names, without a set of all of it.

A set of 180,000 names takes 8 MB, and 12 while it grows. Here each item marks a byte, and only an item whose byte is
marked already is looked at again; with eight bytes for each item or more, these are one in sixteen at most if no item
is repeated.
"""

from __future__ import annotations

from collections.abc import Collection, Generator, Hashable
from itertools import islice
from typing import Final, TypeVar

from odradek.timer.sliced_work import distinct

KeyT = TypeVar("KeyT", bound=Hashable)

BYTES_AN_ITEM: Final = 8
ITEMS_A_STEP: Final = 8

_WORD_BITS: Final = 64
_WORD: Final = (1 << _WORD_BITS) - 1
_HALF_WORD_BITS: Final = 32

_MULTIPLIER: Final = hash(__name__) | 1
"""Differs between processes, as Python's hashes of texts do. The hash of a number is the number, so without it a client
could choose numbers of 32 bits that all mark one byte. One multiplication would leave patterns in numbers with equal
distances. Source: multiply-shift hashing (Dietzfelbinger and others, 1997), and the last steps of MurmurHash3.
"""

FEW: Final = 1000
"""Items that may be put into a dictionary."""


def repeated(items: Collection[KeyT]) -> Generator[None, None, set[KeyT]]:
    """The items that are there more than once, in steps. They are read twice, and must not change meanwhile."""
    bits = (BYTES_AN_ITEM * len(items)).bit_length()
    marks, shift = bytearray(1 << bits), _WORD_BITS - bits
    suspects: set[KeyT] = set()
    left = iter(items)
    while some := list(islice(left, ITEMS_A_STEP)):
        for item in some:
            mixed = hash(item) * _MULTIPLIER & _WORD
            place = ((mixed ^ mixed >> _HALF_WORD_BITS) * _MULTIPLIER & _WORD) >> shift
            if marks[place]:
                suspects.add(item)
            else:
                marks[place] = 1
        yield
    found: set[KeyT] = set()
    seen: set[KeyT] = set()
    left = iter(items if suspects else ())
    while some := list(islice(left, ITEMS_A_STEP)):
        for item in some:
            if item in suspects:
                (found if item in seen else seen).add(item)
        yield
    return found


def each_once(items: Collection[KeyT]) -> Generator[None, None, Collection[KeyT]]:
    """Each item once, in the order of the first mentions, in steps: `items` themselves if none is repeated."""
    if len(items) > FEW and not (yield from repeated(items)):
        return items
    return (yield from distinct(items))
