"""How the help of the commands looks: as wide as the terminal, descriptions and examples as they are written."""

from __future__ import annotations

import argparse
import os
from typing import Final

DEFAULT_COLUMNS: Final = 80


class HelpFormat(argparse.RawDescriptionHelpFormatter):
    """As wide as the terminal. argparse makes one for each option, and imports shutil to ask for the width."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_terminal_columns() - 2)


def _terminal_columns() -> int:
    """`COLUMNS`, or the width of the terminal, or 80."""
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns) > 0:
        return int(columns)
    try:
        return os.get_terminal_size().columns or DEFAULT_COLUMNS
    except OSError:
        return DEFAULT_COLUMNS
