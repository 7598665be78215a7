"""The refusal to start, in one line an operator understands. `odradek serve` prints it and exits with status 1."""

from __future__ import annotations


class StartupError(Exception):
    """The message is all there is to say: no traceback will be shown."""
