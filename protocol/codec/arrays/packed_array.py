"""A long array of a request that stays as the bytes that came: an element is made when it is read, and then forgotten.

170,000 structs of six bytes each, which one megabyte may hold, would need 10 to 20 MB as objects. A handler that reads
them one after the other, or in passes, needs the frame alone.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, TypeAlias, TypeVar

from odradek.protocol.codec.arrays.mapped import ReadInOrder
from odradek.protocol.codec.limits import MAX_DECODED_VALUES, MAX_TAGGED_FIELDS

T = TypeVar("T")
Bytes: TypeAlias = bytes | memoryview
ElementDecoder: TypeAlias = "Callable[[Bytes, int, int, int], tuple[T, int]]"

LARGE_BYTES: Final = 4_096
"""An element of more bytes stays: to decode it again would take longer than one step may."""

STEP: Final = 16
"""Of so many elements in a row the position of the first is kept."""


class PackedArray(ReadInOrder[T]):
    """The elements of an array whose bytes are known to be valid.

    What is read twice is two objects, and a change of one is lost. Reading an element by its number decodes up to
    `STEP - 1` before it.
    """

    __slots__ = ("_count", "_data", "_decode", "_starts", "large")

    def __init__(self, decode: ElementDecoder[T], data: Bytes, count: int) -> None:
        """`decode(data, position, values, tags)` is the element at a position and the position behind it; `values` and
        `tags` are its budget. All `count` elements have to be added before one is read.
        """
        self._decode = decode
        self._data = data
        self._starts = array("I")
        self._count = count
        self.large: dict[int, tuple[T, int]] = {}
        """The elements that stay, with the positions behind them, by number."""

    def add(self, number: int, element: T, first: int, stop: int) -> None:
        """The next element, which has the bytes from `first` to `stop`."""
        if number % STEP == 0:
            self._starts.append(first)
        if stop - first > LARGE_BYTES:
            self.large[number] = element, stop

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        return self._from(0)

    def _nth(self, number: int) -> T:
        before = number % STEP
        return next(islice(self._from(number - before), before, None))

    def _from(self, number: int) -> Iterator[T]:
        """The elements from one on, which is the first of a step."""
        decode, data, large = self._decode, self._data, self.large
        position = self._starts[number // STEP]
        for each in range(number, self._count):
            if each in large:
                element, position = large[each]
            else:
                element, position = decode(data, position, MAX_DECODED_VALUES, MAX_TAGGED_FIELDS)
            yield element


def packed_numbers(code: str, data: Bytes) -> array[int]:
    """Big-endian numbers as an array of the type `code` of `struct`, which needs no more memory than the bytes."""
    numbers = array(code, data if isinstance(data, bytes) else data.tobytes())
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers
