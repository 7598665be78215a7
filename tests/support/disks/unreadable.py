"""Files that can be opened and not read, as on a disk with bad sectors. Reads through a map are not affected."""

from __future__ import annotations

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest


def make_unreadable(monkeypatch: pytest.MonkeyPatch, directory: Path, suffix: str) -> list[str]:
    """Let reads of the files below `directory` with this suffix fail; returns the names of all files that are read from
    now on.
    """
    pread, preadv = os.pread, os.preadv
    names: list[str] = []

    def check(fd: int) -> None:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        names.append(path.name)
        if path.is_relative_to(directory) and path.suffix == suffix:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def checked_pread(fd: int, size: int, position: int) -> bytes:
        check(fd)
        return pread(fd, size, position)

    def checked_preadv(fd: int, buffers: Sequence[memoryview], position: int) -> int:
        check(fd)
        return preadv(fd, buffers, position)

    monkeypatch.setattr(os, "pread", checked_pread)
    monkeypatch.setattr(os, "preadv", checked_preadv)
    return names
