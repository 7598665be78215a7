"""Directories for tests that make thousands of files."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

MEMORY = "/dev/shm"


@pytest.fixture
def memory_path() -> Iterator[Path]:
    """A directory in memory if possible: its files survive the death of a process like those on a disk."""
    path = Path(tempfile.mkdtemp(prefix="odradek-", dir=MEMORY if os.path.isdir(MEMORY) else None))
    yield path
    shutil.rmtree(path)
