"""The error of a refused start: one line for the operator. `odradek serve` prints it and exits with status 1."""

from __future__ import annotations

import sys
from typing import Final

EXIT_REFUSED: Final = 1


class StartupError(Exception):
    """Only the message is printed, no traceback."""


def refuse(error: BaseException) -> int:
    """Print the reason of a refusal in one line. Returns the exit status."""
    line = " ".join(str(error).split()) or type(error).__name__
    sys.stderr.write(f"odradek: {line}\n")
    return EXIT_REFUSED
