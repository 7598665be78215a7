"""The database of the metadata is readable by its owner alone: it holds SCRAM credentials and the secrets of tokens.

SQLite gives its other files (`-wal`, `-shm`, `-journal`) the mode that the database has when they are created.
"""

from __future__ import annotations

import contextlib
import logging
import os
import stat
from typing import Final

PRIVATE: Final = 0o600

IN_MEMORY: Final = ":memory:"
"""SQLite's name of a database that has no file."""

_SQLITE_FILES: Final = ("", "-wal", "-shm", "-journal")

logger = logging.getLogger("odradek.controller")


def make_private(path: str) -> None:
    """Create the database without rights for others, or take these rights away, also from SQLite's other files.

    The files are not opened: closing a file drops the locks that this process has on it.
    """
    if path == IN_MEMORY:
        return
    with contextlib.suppress(OSError):  # it exists; if it cannot be created, SQLite gives the reason
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE))
    for suffix in _SQLITE_FILES:
        with contextlib.suppress(FileNotFoundError):
            _take_rights_of_others(path + suffix)


def _take_rights_of_others(path: str) -> None:
    mode = stat.S_IMODE(os.stat(path).st_mode)
    if not mode & ~PRIVATE & 0o777:
        return
    try:
        os.chmod(path, mode & PRIVATE)
    except PermissionError as error:
        logger.warning("Others may read or write %s, which holds secrets, and its mode %o stays: %s", path, mode, error)
    else:
        logger.info(
            "Others could read or write %s, which holds secrets: its mode %o is now %o", path, mode, mode & PRIVATE
        )
