"""Lists on a command line: `0,1,2`.

Apache's tools split them with Java's `String.split`, which drops empty items at the end: `0,1,` is `0,1`.
"""

from __future__ import annotations


def split(text: str, separator: str = ",") -> list[str]:
    """The items. Those at the end that are empty are left out, but an empty text is one empty item."""
    items = text.split(separator)
    if len(items) > 1:
        while items and not items[-1]:
            items.pop()
    return items


def integers(text: str, separator: str = ",") -> list[int]:
    """The items, which are numbers. Raises: ValueError."""
    return [int(item) for item in split(text, separator)]
