"""Text of bytes, numbers and paths as the JVM writes it, where Python differs.

Source: String(byte[], UTF_8), OptionalLong.toString, Long.parseLong and java.io.File.
"""

from __future__ import annotations

import os
import re
from typing import Final

_ENCODED_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT: Final = "�".encode()
_LONG: Final = re.compile(r"[+-]?\d+", re.ASCII)


def java_string(data: bytes) -> str:
    """Decode UTF-8. Invalid bytes become U+FFFD; an encoded surrogate becomes one U+FFFD, not three."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _ENCODED_SURROGATE.sub(_REPLACEMENT, data).decode(errors="replace")


def optional_long(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def parse_long(text: str) -> int:
    """Raises: ValueError with Java's message."""
    if not _LONG.fullmatch(text):
        raise ValueError(f'For input string: "{text}"')
    return int(text)


def java_int(number: int) -> int:
    """The number, wrapped to a signed 32-bit integer."""
    return ((number + 2**31) & 0xFFFFFFFF) - 2**31


def file_path(text: str) -> str:
    """A path as File prints it: no double slashes, none at the end, nothing else resolved."""
    path = re.sub("/+", "/", text)
    return path.rstrip("/") if len(path) > 1 else path


def absolute_path(path: str) -> str:
    return os.path.join(os.getcwd(), path)
