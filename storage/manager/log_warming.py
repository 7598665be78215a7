"""Bringing into memory what opening a log looks at, in the I/O pool, so that the event loop does not wait for a disk.

A log's directory is listed, each of its files is looked at and opened, and small ones and the ends of large ones are
read: leader epochs, producer snapshots, the last entries of indexes, the last batches. On a busy disk each of these
may take a hundred milliseconds the first time, and none the second.

Nothing comes of an error: who opens the log meets it again, and says so.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

END_BYTES: Final = 8 * 1024
"""Read at the end of a file; a batch that begins further ahead is not known of before."""


def warm_dirs(paths: Iterable[str]) -> None:
    """Look at these directories, and at the files right in them."""
    for path in paths:
        with suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                with suppress(OSError):
                    if entry.is_file():
                        _warm_file(entry)


def _warm_file(entry: os.DirEntry[str]) -> None:
    size = entry.stat().st_size
    if size:
        fd = os.open(entry.path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.pread(fd, END_BYTES, max(0, size - END_BYTES))
        finally:
            os.close(fd)
