"""From where a process of the project imports it."""

from __future__ import annotations

import os
from pathlib import Path


def python_path(*folders: Path) -> str:
    """A PYTHONPATH of the environment's and then of these folders: so the compiled package replaces the source."""
    return os.pathsep.join([*filter(None, [os.environ.get("PYTHONPATH")]), *map(str, folders)])
