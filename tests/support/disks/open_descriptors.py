"""The descriptors of a process, for tests that want to see none left open.

In the process of the tests itself, other tests have left some that are closed when garbage is collected, which may
happen at any time.
"""

from __future__ import annotations

import gc
import os
from contextlib import suppress
from pathlib import Path


def open_targets(process_id: int | str) -> list[str]:
    """What the descriptors of a process have open, one for each: a path, or `socket:[inode]` and the like."""
    targets = []
    for descriptor in Path(f"/proc/{process_id}/fd").iterdir():
        with suppress(FileNotFoundError):  # closed since it was listed, as that of the listing itself
            targets.append(os.readlink(descriptor))
    return targets


def open_below(directory: Path) -> list[str]:
    """The paths below a directory that descriptors of this process have open, a path for each descriptor."""
    return sorted(path for path in open_targets("self") if Path(path).is_relative_to(directory))


def count_after_collection() -> int:
    """How many descriptors are open after garbage has been collected."""
    gc.collect()
    return len(os.listdir("/proc/self/fd"))
