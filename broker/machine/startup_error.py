"""The refusal to start, in one line an operator understands. `odradek serve` prints it and exits with status 1."""

from __future__ import annotations

import sys
from typing import Final

EXIT_REFUSED: Final = 1


class StartupError(Exception):
    """The message is all there is to say: no traceback will be shown."""


def refuse(error: BaseException) -> int:
    """Print in one line why the command was refused; answers the exit status."""
    line = " ".join(str(error).split()) or type(error).__name__
    sys.stderr.write(f"odradek: {line}\n")
    return EXIT_REFUSED
