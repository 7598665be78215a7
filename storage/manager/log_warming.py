"""Reads the file parts that opening a log needs into the page cache, in the I/O pool: the event loop then does not wait
for the disk.

It lists a log's directory, opens each file and reads its end: leader epochs, producer snapshots, the last entries of
indexes, the last batches. On a busy disk each first access may take a hundred milliseconds, the second one none.

Errors are ignored: opening the log meets and reports them.

Of a data directory only the checkpoints are opened. POSIX drops all locks that a process holds on a file when it
closes any descriptor of that file: to open and close `odradek-metadata.db` or `.lock` here would unlock them.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from odradek.storage.disk.checkpoint_files import (
    CLEANER_OFFSET_FILE,
    HIGH_WATERMARK_FILE,
    LOG_START_OFFSET_FILE,
    RECOVERY_POINT_FILE,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

END_BYTES: Final = 8 * 1024
"""The bytes read at the end of each file. The batches before them are not warmed."""


CHECKPOINTS: Final = (CLEANER_OFFSET_FILE, HIGH_WATERMARK_FILE, LOG_START_OFFSET_FILE, RECOVERY_POINT_FILE)


def warm_data_dirs(paths: Iterable[str]) -> None:
    """List these data directories, and read the checkpoints in them."""
    for path in paths:
        with suppress(OSError), os.scandir(path) as entries:
            for entry in entries:
                if entry.name in CHECKPOINTS:
                    with suppress(OSError):
                        _warm_file(entry)


def warm_log_dirs(paths: Iterable[str]) -> None:
    """List these directories of one log each, and read the ends of the files in them."""
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
