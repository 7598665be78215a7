"""What a daemon tells its operator: a banner when it has started, or one line that says why its start is refused."""

from __future__ import annotations

import logging
import os
import sys
from typing import Final

logger = logging.getLogger(__name__)

EXIT_REFUSED: Final = 1


class StartupError(Exception):
    """Only the message is printed, no traceback."""


def refuse(error: BaseException) -> int:
    """Print the reason of a refusal in one line. Returns the exit status."""
    line = " ".join(str(error).split()) or type(error).__name__
    sys.stderr.write(f"odradek: {line}\n")
    return EXIT_REFUSED


def announce(text: str) -> None:
    """Print the banner of a daemon on stdout. The daemon goes on without it where it cannot be written."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except (OSError, UnicodeError) as error:
        logger.warning("The banner cannot be written to standard output: %s", error)
        drop_output()


def drop_output() -> None:
    """Write what is still to come on stdout to nowhere: else the end of the interpreter would fail to write it."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)
