"""The descriptors of this process, for tests that want to see none left open.

Other tests of the process have left some that are closed when garbage is collected, which may happen at any time.
"""

from __future__ import annotations

import gc
import os
from contextlib import suppress
from pathlib import Path


def open_below(directory: Path) -> list[str]:
    """The paths below a directory that descriptors of this process have open, a path for each descriptor."""
    paths = []
    for number in os.listdir("/proc/self/fd"):
        with suppress(FileNotFoundError):  # that of the listing itself
            paths.append(os.readlink(f"/proc/self/fd/{number}"))
    return sorted(path for path in paths if Path(path).is_relative_to(directory))


def count_after_collection() -> int:
    """How many descriptors are open after garbage has been collected."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))
