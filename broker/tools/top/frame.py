"""Draws a frame with `rich`, for a terminal or as plain tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.table import Table
from rich.text import Text

from odradek.broker.tools.command.terminal_text import visible
from odradek.broker.tools.top.screen_state import HELP, TABLES, ScreenState

if TYPE_CHECKING:
    from rich.console import RenderableType

    from odradek.broker.tools.top.figures import Figures

HEADINGS: Final = {
    "broker": "BROKER",
    "address": "ADDRESS",
    "rack": "RACK",
    "controller": "CONTROLLER",
    "leaders": "LEADERS",
    "replicas": "REPLICAS",
    "out_of_sync": "OUT OF SYNC",
    "records_per_second": "RECORDS/S",
    "bytes_per_second": "BYTES/S",
    "size_bytes": "SIZE",
    "free_bytes": "FREE",
    "topic": "TOPIC",
    "partitions": "PARTITIONS",
    "under_replicated": "UNDER-REPLICATED",
    "end_offsets": "END OFFSETS",
    "group": "GROUP",
    "state": "STATE",
    "members": "MEMBERS",
    "coordinator": "COORDINATOR",
    "topics": "TOPICS",
    "lag": "LAG",
}
"""The columns that are shown; JSON has more."""

_ALARMING: Final = frozenset({"out_of_sync", "under_replicated", "without_leader"})
_BYTES: Final = frozenset({"bytes_per_second", "size_bytes", "free_bytes"})
_IDS: Final = frozenset({"broker", "coordinator"})
_RATES: Final = frozenset({"records_per_second"})
_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
FIXED_LINES: Final = 12
"""Lines of a screen that are no rows: the summary, titles, headings, blanks, the keys."""


def cell(name: str, value: str | float | bool | None) -> str:
    """A fact for people."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "*" if value else ""
    if name in _BYTES:
        return size_text(float(value))
    if isinstance(value, str) or name in _IDS:
        return str(value)
    return f"{value:,.1f}" if name in _RATES else f"{value:,}"


def size_text(size: float) -> str:
    """Bytes in the largest unit of which there is at least one."""
    unit = 0
    while size >= 1024 and unit < len(_UNITS) - 1:
        size /= 1024
        unit += 1
    return f"{size:.0f} {_UNITS[unit]}" if unit == 0 else f"{size:.1f} {_UNITS[unit]}"


def draw(found: Figures, state: ScreenState, *, height: int | None, note: str = "") -> RenderableType:
    """A frame. `height`: lines of the screen; None: all rows, without the line of keys."""
    parts: list[RenderableType] = [_summary(found)]
    left = {table: len(state.rows(found, table)) for table in TABLES}
    shares = left if height is None else share_lines(left, max(3, height - FIXED_LINES))
    for table in TABLES:
        parts += [Text(""), _table(found, state, table, shares[table], is_chosen=height is not None)]
    if height is not None:
        parts += [Text(""), Text(note or HELP, style="red" if note else "dim", no_wrap=True, overflow="ellipsis")]
    return Group(*parts)


def share_lines(wanted: dict[str, int], lines: int) -> dict[str, int]:
    """Lines for each table: each gets as many as it needs, or an equal share of the screen."""
    shares = dict.fromkeys(wanted, 0)
    while lines > 0 and any(shares[table] < count for table, count in wanted.items()):
        for table, count in wanted.items():
            if shares[table] < count and lines > 0:
                shares[table] += 1
                lines -= 1
    return shares


def _summary(found: Figures) -> Text:
    summary = found.summary
    text = Text(no_wrap=True, overflow="ellipsis")
    text.append(f"cluster {summary['cluster']}", style="bold")
    text.append(f"  controller {summary['controller']}  partitions {summary['partitions']}")
    for name in ("without_leader", "under_replicated"):
        style = "bold red" if summary[name] else ""
        text.append(f"  {name.replace('_', ' ')} {summary[name]}", style=style)
    for name, heading in (("records_per_second", "records/s"), ("bytes_per_second", "bytes/s")):
        text.append(f"  {heading} {cell(name, summary[name])}")
    return text


def _table(found: Figures, state: ScreenState, name: str, lines: int, *, is_chosen: bool) -> Table:
    rows = state.rows(found, name)
    chosen = is_chosen and state.table == name
    title = f"{name} ({len(rows)})" + (" paused" if chosen and state.is_paused else "")
    drawn = Table(
        title=Text(title, style="bold reverse" if chosen else "bold"), title_justify="left", box=None, pad_edge=False
    )
    columns = [column for column in (rows[0] if rows else {}) if column in HEADINGS]
    for column in columns:
        is_number = all(not isinstance(row[column], str) for row in rows)
        style = "bold underline" if state.order[name] == column else "bold"
        drawn.add_column(HEADINGS[column], justify="right" if is_number else "left", header_style=style, no_wrap=True)
    for row in rows[:lines]:
        drawn.add_row(
            *(
                Text(
                    visible(cell(column, row[column])), style="bold red" if column in _ALARMING and row[column] else ""
                )
                for column in columns
            )
        )
    return drawn
