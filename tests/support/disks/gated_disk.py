"""A disk whose changes of directories wait until the test lets them go on, as behind the journal of a busy disk."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Final

from odradek.storage.disk.file_system import OsFileSystem

if TYPE_CHECKING:
    from collections.abc import Callable

WAIT_S: Final = 20


class GatedFileSystem(OsFileSystem):
    """The real disk. While it is closed, changes of directories wait in their thread; `failure` is raised by those that
    waited. In the thread that made this object, the event loop's, such a change is noted in `on_loop` and goes on.
    """

    __slots__ = ("_gate", "_loop_thread", "failure", "on_loop", "waiting")

    def __init__(self) -> None:
        self._loop_thread = threading.get_ident()
        self._gate = threading.Event()
        self._gate.set()
        self.failure: Callable[[], OSError] | None = None
        self.on_loop: list[str] = []
        """The changes of directories that the event loop made while the disk was closed."""
        self.waiting: list[str] = []

    def close(self) -> None:
        self._gate.clear()

    def open_again(self) -> None:
        self._gate.set()

    def _pass(self, name: str) -> None:
        if self._gate.is_set():
            return
        if threading.get_ident() == self._loop_thread:
            self.on_loop.append(name)
            return
        self.waiting.append(name)
        assert self._gate.wait(WAIT_S)
        if self.failure is not None:
            raise self.failure()

    def open(self, path: str, *, create: bool = False, writable: bool = True) -> int:
        if create and not os.path.exists(path):
            self._pass(f"create {os.path.basename(path)}")
        return super().open(path, create=create, writable=writable)

    def rename(self, source: str, target: str) -> None:
        self._pass(f"rename {os.path.basename(source)}")
        super().rename(source, target)

    def unlink(self, path: str) -> None:
        if os.path.exists(path):
            self._pass(f"unlink {os.path.basename(path)}")
        super().unlink(path)

    def make_dir(self, path: str) -> None:
        if not os.path.isdir(path):
            self._pass(f"make {os.path.basename(path)}")
        super().make_dir(path)

    def remove_tree(self, path: str) -> None:
        self._pass(f"remove {os.path.basename(path)}")
        super().remove_tree(path)
