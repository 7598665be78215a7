"""The format of server.properties and meta.properties: `key=value`, as java.util.Properties reads it.

A trailing backslash continues a logical line; leading white space is dropped, also from the continuation. `#` and `!`
begin a comment. The key ends at the first unescaped `=`, `:` or white space. Escapes: \\t \\n \\r \\f, \\uXXXX; a
backslash before any other character stands for that character. The last value of a repeated key counts.

Kafka: Utils.loadProps.
"""

from __future__ import annotations

import os
import re
from typing import Final

_ESCAPE: Final = re.compile(r"\\(u[0-9a-fA-F]{4}|.|$)", re.DOTALL)
_KEY: Final = re.compile(r"(?:\\.|[^\\=: \t\f])*", re.DOTALL)
_BLANK: Final = " \t\f"
_CONTROL: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def read_properties(path: str | os.PathLike[str]) -> dict[str, str]:
    r"""The keys and values of a file in ISO-8859-1, as Java reads it. Other characters are `\uXXXX` there.

    Raises: OSError, ValueError.
    """
    with open(path, encoding="iso-8859-1") as file:
        return parse_properties(file.read())


def parse_properties(text: str) -> dict[str, str]:
    """The keys and values of a properties file. Raises ValueError for a broken \\u escape."""
    properties = {}
    for line in _logical_lines(text):
        match = _KEY.match(line)
        assert match is not None  # it matches the empty string
        rest = line[match.end() :]
        # One separator, with blanks around it; blanks alone separate too.
        rest = rest.lstrip(_BLANK)
        if rest[:1] in ("=", ":"):
            rest = rest[1:].lstrip(_BLANK)
        properties[_unescape(match[0])] = _unescape(rest)
    return properties


def _logical_lines(text: str) -> list[str]:
    lines = []
    pending: str | None = None
    for natural in re.split(r"\r\n|\r|\n", text):
        line = natural.lstrip(_BLANK)
        if pending is None:
            if not line or line[0] in "#!":
                continue
        else:
            line = pending + line
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending = line[:-1]
        else:
            lines.append(line)
            pending = None
    if pending is not None:
        lines.append(pending)
    return lines


def _unescape(text: str) -> str:
    if "\\" not in text:
        return text
    # A character above U+FFFF is two escapes, each with half of it.
    return _ESCAPE.sub(_unescaped, text).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _unescaped(match: re.Match[str]) -> str:
    escaped = match[1]
    if len(escaped) == 5:
        return chr(int(escaped[1:], 16))
    if escaped == "u":
        raise ValueError("Malformed \\uxxxx encoding.")
    return _CONTROL.get(escaped, escaped)
