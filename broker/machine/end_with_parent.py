"""A process that must not outlive the one that started it: it stops in order when its standard input ends.

The parent holds the other end of the pipe. However the parent ends, the kernel closes that end.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import Final

_STDIN: Final = 0


def end_with_parent() -> None:
    """Send this process SIGTERM when its standard input ends."""
    threading.Thread(target=_wait, name="parent", daemon=True).start()


def _wait() -> None:
    while os.read(_STDIN, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
