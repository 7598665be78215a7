"""What the keys have chosen: the table, its order, the first row that is shown. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from odradek.broker.tools.top.figures import Figures, Row

TABLES: Final = ("brokers", "topics", "groups")
DEFAULT_ORDER: Final = {"brokers": "broker", "topics": "records_per_second", "groups": "lag"}
DESCENDING: Final = frozenset({"records_per_second", "bytes_per_second", "lag", "size_bytes", "under_replicated"})
HELP: Final = (
    "q quit  Tab table  s/S sort by next/previous column  r reverse  j/k scroll  i internal topics  space pause"
)

_KEYS: Final = {b"\x1b[A": b"k", b"\x1b[B": b"j", b"\x1b[Z": b"\x7f", b"\x03": b"q", b"\x04": b"q"}
"""Arrows, Shift-Tab, Ctrl-C, Ctrl-D: what they mean."""


@dataclass(frozen=True, slots=True)
class ScreenState:
    """The state; `key` gives the next one."""

    table: str = "topics"
    """The one that the keys work on."""
    order: dict[str, str] = field(default_factory=lambda: dict(DEFAULT_ORDER))
    reversed: frozenset[str] = frozenset()
    """The tables in the opposite of their column's usual order."""
    first: dict[str, int] = field(default_factory=dict)
    """The first row that is shown, by table."""
    with_internal: bool = False
    is_paused: bool = False
    is_over: bool = False

    def key(self, key: bytes, columns: Sequence[str]) -> ScreenState:
        """The state after a key. `columns`: those of the chosen table."""
        match _KEYS.get(key, key):
            case b"q" | b"Q" | b"\x1b":
                return replace(self, is_over=True)
            case b"\t":
                return replace(self, table=_next(TABLES, self.table, 1))
            case b"\x7f":
                return replace(self, table=_next(TABLES, self.table, -1))
            case b"s" | b"S" as step if columns:
                column = _next(columns, self.order[self.table], 1 if step == b"s" else -1)
                return replace(self, order={**self.order, self.table: column}, first={**self.first, self.table: 0})
            case b"r":
                return replace(self, reversed=self.reversed ^ {self.table})
            case b"j":
                return self._scrolled(1)
            case b"k":
                return self._scrolled(-1)
            case b"i":
                return replace(self, with_internal=not self.with_internal)
            case b" ":
                return replace(self, is_paused=not self.is_paused)
        return self

    def _scrolled(self, step: int) -> ScreenState:
        return replace(self, first={**self.first, self.table: max(0, self.first.get(self.table, 0) + step)})

    def rows(self, found: Figures, table: str) -> list[Row]:
        """The rows of a table in the chosen order, from the first that is shown."""
        rows: list[Row] = getattr(found, table)
        if table == "topics" and not self.with_internal:
            rows = [row for row in rows if not row["internal"]]
        column = self.order[table]
        is_descending = (column in DESCENDING) != (table in self.reversed)
        rows = sorted(rows, key=lambda row: _sort_key(row[column]), reverse=is_descending)
        return rows[min(self.first.get(table, 0), max(0, len(rows) - 1)) :]


def split_keys(data: bytes) -> list[bytes]:
    """What a terminal sends for one key each."""
    keys: list[bytes] = []
    while data:
        size = 3 if data[:2] == b"\x1b[" and len(data) > 2 else 1
        keys.append(data[:size])
        data = data[size:]
    return keys


def _next(names: Sequence[str], name: str, step: int) -> str:
    return names[(names.index(name) + step) % len(names)] if name in names else names[0]


def _sort_key(value: str | float | bool | None) -> tuple[bool, float, str]:
    if isinstance(value, str):
        return (False, 0, value)
    return (value is not None, float(value or 0), "")
