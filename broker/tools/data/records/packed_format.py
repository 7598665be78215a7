"""Packed numbers of a key or value as text: kcat's -s.

A format is a row of letters, each for the next bytes: b B 8-bit, h H 16-bit, i I 32-bit, q Q 64-bit integers (small
letters are signed), c one byte as it is, s all that is left. `>` (at first) and `<` choose the byte order of what
follows, a blank is printed, and `$` demands that nothing is left. Without `$` the rest is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Final

from odradek.broker.tools.data.records.deserializers import SerializationError

PACKED_FORMATS: Final = "<>bBhHiIqQcs$"
_NUMBERS: Final = {byte_order + letter: Struct(byte_order + letter) for byte_order in "<>" for letter in "bBhHiIqQ"}


def packed_format(what: str, text: str) -> Callable[[bytes], bytes]:
    """The function that unpacks. `what` ("key", "value") is named in errors. Raises: ValueError for an unknown letter.

    The function raises SerializationError for bytes that do not fit. Null and empty fields are not unpacked.
    """
    if not text:
        raise ValueError(f"the packed format of the {what} is empty")
    if text == "avro":
        raise ValueError("-s avro needs a schema registry, which is not known here")
    for letter in text:
        if letter not in PACKED_FORMATS and letter != " ":
            raise ValueError(f"'{letter}' is no letter of a packed format ({what}); known are {PACKED_FORMATS}")

    def unpacked(data: bytes) -> bytes:
        pieces = []
        byte_order = ">"
        position = 0
        for letter in text:
            if letter in "<>":
                byte_order = letter
            elif letter == " ":
                pieces.append(b" ")
            elif letter == "s":
                pieces.append(data[position:])
                position = len(data)
            elif letter == "$":
                if position < len(data):
                    raise SerializationError(
                        f"expected {what} end-of-input, but {len(data) - position} bytes remaining"
                    )
            else:
                layout = _NUMBERS.get(byte_order + letter)
                size = 1 if layout is None else layout.size
                if len(data) - position < size:
                    raise SerializationError(
                        f"{what} truncated, expected {size} bytes to unpack {letter} "
                        f"but only {len(data) - position} bytes remaining"
                    )
                if layout is None:  # the letter c
                    pieces.append(data[position : position + 1])
                else:
                    pieces.append(str(layout.unpack_from(data, position)[0]).encode())
                position += size
        return b"".join(pieces)

    return unpacked
