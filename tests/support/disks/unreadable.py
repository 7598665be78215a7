"""Files that can be opened and not read, or not examined, as on a disk with bad sectors.

Reads through a map are not affected.
"""

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


def make_unexaminable(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """Let `os.stat` of `path` fail, with which `os.path.exists` is False."""
    stat = os.stat

    def checked_stat(
        of: int | str | os.PathLike[str], *, dir_fd: int | None = None, follow_symlinks: bool = True
    ) -> os.stat_result:
        if not isinstance(of, int) and os.fspath(of) == str(path):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return stat(of, dir_fd=dir_fd, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(os, "stat", checked_stat)
