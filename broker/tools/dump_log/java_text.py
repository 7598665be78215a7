"""How the JVM turns bytes, numbers and paths into text, where Python does it otherwise.

Answers to String(byte[], UTF_8), OptionalLong.toString, Long.parseLong and java.io.File.
"""

from __future__ import annotations

import os
import re
from typing import Final

_ENCODED_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_REPLACEMENT: Final = "�".encode()
_LONG: Final = re.compile(r"[+-]?\d+", re.ASCII)


def java_string(data: bytes) -> str:
    """The text of UTF-8 bytes; what is none becomes U+FFFD, an encoded surrogate one and not three."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return _ENCODED_SURROGATE.sub(_REPLACEMENT, data).decode(errors="replace")


def optional_long(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"


def parse_long(text: str) -> int:
    """The number; ValueError in Java's words."""
    if not _LONG.fullmatch(text):
        raise ValueError(f'For input string: "{text}"')
    return int(text)


def java_int(number: int) -> int:
    """What is left of a number in 32 bits."""
    return ((number + 2**31) & 0xFFFFFFFF) - 2**31


def file_path(text: str) -> str:
    """A path as File prints it: no double slashes, none at the end, nothing else resolved."""
    path = re.sub("/+", "/", text)
    return path.rstrip("/") if len(path) > 1 else path


def absolute_path(path: str) -> str:
    return os.path.join(os.getcwd(), path)
