r"""Text from outside (names of groups and clients, keys and values of records), made safe for a terminal.

A terminal obeys control characters: they move the cursor, set its title or its colours, and turn the direction of the
text. Shown here are their codes instead, such as `\x1b`. Line breaks and tabs stay.
"""

from __future__ import annotations

from typing import Final, TextIO

_KEPT: Final = frozenset({0x09, 0x0A})
_DIRECTIONS: Final = (0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_RAW_BYTES: Final = range(0xDC80, 0xDCA0)
"""Bytes that are no UTF-8, as `surrogateescape` decodes them: some terminals take them for control characters."""

_CODES: Final = {
    **{code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0)) if code not in _KEPT},
    **{code: f"\\u{code:04x}" for code in _DIRECTIONS},
    **{code: f"\\x{code - 0xDC00:02x}" for code in _RAW_BYTES},
}


def visible(text: str) -> str:
    """The text with codes in place of control characters."""
    return text.translate(_CODES)


def visible_bytes(data: bytes) -> bytes:
    """The same for UTF-8; other bytes stay, except those that may be control characters."""
    return data.decode("utf-8", "surrogateescape").translate(_CODES).encode("utf-8", "surrogateescape")


def write(stream: TextIO, text: str) -> None:
    """Write to standard output or error: as it is, or visible on a terminal."""
    stream.write(visible(text) if stream.isatty() else text)
