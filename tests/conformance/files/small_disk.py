"""A small disk: a tmpfs in a mount namespace, which lives as long as the process that holds it.

Needs `unshare` and `nsenter` of util-linux and a kernel that lets users have namespaces; without them a test fails and
says so. What runs under `prefix` sees the disk at its path, and so does the test through `inside`.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Self

BLOCK = 4096


class SmallDisk:
    """A tmpfs of `size_bytes` at `path`, a directory that is made."""

    def __init__(self, path: Path, size_bytes: int) -> None:
        path.mkdir(parents=True)
        mount = 'mount -t tmpfs -o "size=$1" none "$0" && echo mounted && exec sleep infinity'
        command = ["unshare", "--map-root-user", "--mount", "sh", "-c", mount, str(path), str(size_bytes)]
        self._holder = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
        )
        assert self._holder.stdout is not None
        answer = self._holder.stdout.readline()
        if answer != "mounted\n":
            self.close()
            raise AssertionError(f"no small disk: `{' '.join(command[:3])}` with a tmpfs does not work here: {answer}")
        self.inside = Path(f"/proc/{self._holder.pid}/root{path}")
        self.prefix = ("nsenter", f"--target={self._holder.pid}", "--user", "--mount", "--preserve-credentials")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._holder.kill()
        self._holder.wait()
        if self._holder.stdout is not None:
            self._holder.stdout.close()

    @property
    def free_bytes(self) -> int:
        found = os.statvfs(self.inside)
        return found.f_bavail * found.f_frsize

    def fill(self, name: str = "foreign") -> None:
        """Let somebody else's file take all there is."""
        with (self.inside / name).open("ab", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(BLOCK))
            except OSError:
                return

    def remove(self, name: str = "foreign") -> None:
        (self.inside / name).unlink()
