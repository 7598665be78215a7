"""A file on this machine that is replaced in one step: a reader never sees half of one."""

from __future__ import annotations

import os
from pathlib import Path


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file. Raises: OSError; the file is then the one before, and nothing is left beside it."""
    scratch = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        scratch.write_bytes(content)
        scratch.replace(path)
    except OSError:
        scratch.unlink(missing_ok=True)
        raise
