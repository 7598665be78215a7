"""Files without fsync. The data of a broker for tests is removed when it stops: no loss of power can matter."""

from __future__ import annotations

from odradek.storage.disk.file_system import OsFileSystem


class UnsyncedFiles(OsFileSystem):
    """The real disk, without waits for it."""

    __slots__ = ()

    def sync(self, fd: int) -> None: ...

    def sync_path(self, path: str) -> None: ...

    def sync_dir(self, path: str) -> None: ...

    def replace_file(self, path: str, content: bytes, *, sync: bool = True) -> None:
        super().replace_file(path, content, sync=False)

    def write_file(self, path: str, content: bytes, *, sync: bool = False) -> None:
        super().write_file(path, content, sync=False)
