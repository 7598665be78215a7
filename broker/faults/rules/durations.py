"""Durations as people write them: `500ms`, `1.5s`, `2m`, `7d`; a plain number is milliseconds."""

from __future__ import annotations

import re
from typing import Final

_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION: Final = re.compile(r"(\d{1,15}(?:\.\d{1,6})?)\s*(ms|s|m|h|d)?")


def to_ms(value: object) -> int:
    """Milliseconds, never negative. Raises: ValueError."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError(f"{value!r} is no duration: write 500ms, 1.5s, 2m, 1h or 7d")
    found = _DURATION.fullmatch(str(value).strip())
    if found is None:
        raise ValueError(f"{value!r} is no duration: write 500ms, 1.5s, 2m, 1h or 7d")
    return round(float(found[1]) * _UNITS_MS[found[2] or "ms"])
