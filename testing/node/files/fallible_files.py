"""Files of a broker for tests whose disk can be full, or slow to sync, when a scenario says so."""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING

from odradek.testing.node.files.unsynced_files import UnsyncedFiles
from odradek.timer.clock import sleep_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from odradek.storage.disk.file_system import Bytes


class FallibleFiles(UnsyncedFiles):
    """`is_full`: nothing can be written. `sync_ms`: how long each sync takes, in the thread that calls it."""

    __slots__ = ("is_full", "sync_ms")

    def __init__(self) -> None:
        self.is_full = False
        self.sync_ms = 0

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> int:
        if create and not os.path.exists(path):
            self._need_room()
        return super().open(path, create=create, writable=writable)

    def append(self, fd: int, parts: Sequence[Bytes], position: int) -> int:
        self._need_room()
        return super().append(fd, parts, position)

    def allocate(self, fd: int, position: int, size: int) -> None:
        self._need_room()
        super().allocate(fd, position, size)

    def make_dir(self, path: str) -> None:
        if not os.path.isdir(path):
            self._need_room()
        super().make_dir(path)

    def write_file(self, path: str, content: bytes, *, sync: bool = False) -> None:
        self._need_room()
        super().write_file(path, content, sync=sync)

    def sync(self, fd: int) -> None:
        self._wait()

    def sync_path(self, path: str) -> None:
        self._wait()

    def sync_dir(self, path: str) -> None:
        self._wait()

    def space(self, path: str) -> tuple[int, int]:
        free, total = super().space(path)
        return (0 if self.is_full else free), total

    def _need_room(self) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def _wait(self) -> None:
        if self.sync_ms:
            sleep_ms(self.sync_ms)
