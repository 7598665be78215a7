"""Lines with columns of fixed width, as Apache's tools print them with `printf`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

MISSING: str = "-"


def column_lines(rows: Iterable[Sequence[object]], widths: Sequence[int]) -> Iterator[str]:
    """Each row as a line; a cell is padded on the right to its width, and 0 leaves it as it is. None is `-`."""
    for row in rows:
        yield " ".join(
            f"{MISSING if cell is None else cell!s:<{width}}" for cell, width in zip(row, widths, strict=True)
        )


def tabbed_lines(rows: Sequence[Sequence[object]]) -> Iterator[str]:
    """Each row as a line; a column is as wide as its longest cell, and a tab follows each.

    Kafka: ToolsUtils.prettyPrintTable.
    """
    widths = [widest(0, cells) for cells in zip(*rows, strict=True)]
    for row in rows:
        yield "".join(f"{cell!s:<{width}}\t" for cell, width in zip(row, widths, strict=True))


def widest(least: int, cells: Iterable[object]) -> int:
    """The width of a column that is as wide as its longest cell, and at least `least`."""
    return max(least, *(len(str(cell)) for cell in cells), 0)
