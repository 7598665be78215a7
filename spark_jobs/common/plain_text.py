"""How the jobs print tables, numbers of bytes, and keys."""

from __future__ import annotations

from collections.abc import Sequence

UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
SHOWN_KEY_CHARACTERS = 40


def table(rows: Sequence[Sequence[str]], columns: Sequence[str], *, left: int = 0) -> list[str]:
    """Lines with the columns one below the other; the first `left` columns are text, the others numbers."""
    widths = [max(len(row[index]) for row in (columns, *rows)) for index in range(len(columns))]
    lines = []
    for row in (columns, *rows):
        cells = (
            cell.ljust(width) if index < left else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        lines.append("  ".join(cells).rstrip())
    return lines


def size_text(size: float) -> str:
    """`1.5 MiB`."""
    unit = 0
    while size >= 1024 and unit < len(UNITS) - 1:
        size /= 1024
        unit += 1
    return f"{size:,.0f} B" if unit == 0 else f"{size:,.1f} {UNITS[unit]}"


def key_text(key: bytes | None) -> str:
    """A key as a person reads it: text in quotation marks, else hexadecimal; long ones are cut."""
    if key is None:
        return "(no key)"
    try:
        text = key.decode()
    except UnicodeDecodeError:
        text = ""
    is_text = text.isprintable() and bool(text or not key)
    return f'"{_cut(text)}"' if is_text else f"0x{_cut(key.hex())}"


def _cut(text: str) -> str:
    return text if len(text) <= SHOWN_KEY_CHARACTERS else f"{text[:SHOWN_KEY_CHARACTERS]}..."
