"""A command in a pseudo terminal, whose screen a test reads. `pyte` interprets what the command writes."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Self

import pyte

from tests.support.processes.apache.jvm import REPOSITORY

LINES, COLUMNS = 45, 150
SCREEN_TIMEOUT_S = 30
TERMINAL = {"TERM": "xterm-256color", "LINES": str(LINES), "COLUMNS": str(COLUMNS)}


class Terminal:
    """Runs a command until the end of a `with` block."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Mapping[str, str] = os.environ,
        directory: str | Path = REPOSITORY,
    ) -> None:
        self._screen = pyte.Screen(COLUMNS, LINES)
        self._stream = pyte.ByteStream(self._screen)
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            command, stdin=slave, stdout=slave, stderr=slave, cwd=directory, env={**environment, **TERMINAL}
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(SCREEN_TIMEOUT_S)
        os.close(self._master)

    def press(self, keys: bytes) -> None:
        os.write(self._master, keys)

    def await_lines(self, accept: Callable[[list[str]], bool]) -> list[str]:
        """The lines of the screen, without blanks at their ends, as soon as they are accepted."""
        deadline = time.monotonic() + SCREEN_TIMEOUT_S
        while True:
            lines = [line.rstrip() for line in self._screen.display]
            if accept(lines):
                return lines
            if time.monotonic() > deadline:
                raise AssertionError("the screen does not show it:\n" + "\n".join(lines))
            self._read(0.2)

    def await_end(self) -> int:
        """The exit status."""
        deadline = time.monotonic() + SCREEN_TIMEOUT_S
        while self.process.poll() is None and time.monotonic() < deadline:
            self._read(0.1)
        return self.process.wait(1)

    def _read(self, timeout_s: float) -> None:
        poller = select.poll()  # select() takes no descriptor above 1,023
        poller.register(self._master, select.POLLIN)
        if poller.poll(1_000 * timeout_s):
            try:
                self._stream.feed(os.read(self._master, 65536))
            except OSError:  # the command has ended
                time.sleep(timeout_s)
