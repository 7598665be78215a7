r"""Escapes and tokens in format strings and delimiters: kcat's notation.

A token is a percent sign and a letter. \n, \r, \t, \\, \0, \e and \xNN are escapes.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from odradek.protocol.records.record import HEADER_KEY_ERRORS

_ESCAPES: Final = {"n": b"\n", "r": b"\r", "t": b"\t", "\\": b"\\", "0": b"\0", "e": b"\x1b"}
_PART: Final = r"%(.)|\\x([0-9a-fA-F]{2})|\\(.)|([^%\\]+)|(.)"


def unescape(text: str) -> bytes:
    r"""The bytes of a delimiter on the command line: \n, \t, \\ and \xNN are escapes. Raises: ValueError."""
    return b"".join(part for _, part in format_parts(text))


def format_parts(text: str, tokens: Collection[str] = ()) -> list[tuple[str, bytes]]:
    """Pairs of a token (its letter) or "" and literal bytes. Without `tokens` a percent sign is one.

    Raises: ValueError for a token that is none.
    """
    parts: list[tuple[str, bytes]] = []
    for token, hexadecimal, escape, plain, single in re.findall(_PART, text, re.DOTALL):
        if token and tokens:
            if token not in tokens and token != "%":
                raise ValueError(f"%{token} is not a token of a format string")
            parts.append(("", b"%") if token == "%" else (token, b""))
        elif token:
            parts.append(("", f"%{token}".encode()))
        elif hexadecimal:
            parts.append(("", bytes.fromhex(hexadecimal)))
        elif escape:
            parts.append(("", _ESCAPES.get(escape, f"\\{escape}".encode())))
        else:
            parts.append(("", (plain or single).encode("utf-8", HEADER_KEY_ERRORS)))
    return parts
