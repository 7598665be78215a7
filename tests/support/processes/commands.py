"""Runs `odradek produce`, `consume` and other commands as processes, to their end or beside a test."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from typing import IO, Self, cast

from tests.support.processes.apache.jvm import REPOSITORY

COMMAND_TIMEOUT_S = 60


@dataclass(frozen=True, slots=True)
class Finished:
    """How a command ended and what it printed."""

    status: int
    stdout: bytes
    stderr: str


def command_line(bootstrap: str, command: str, *arguments: str) -> list[str]:
    return [sys.executable, "-m", "odradek", command, "--bootstrap-server", bootstrap, *arguments]


def run_command(
    bootstrap: str, command: str, *arguments: str, stdin: bytes = b"", status: int = 0, timeout_s: float | None = None
) -> Finished:
    """Run a command to its end; its exit status must be `status`."""
    done = subprocess.run(
        command_line(bootstrap, command, *arguments),
        input=stdin,
        capture_output=True,
        timeout=timeout_s or COMMAND_TIMEOUT_S,
        check=False,
        cwd=REPOSITORY,
    )
    found = Finished(done.returncode, done.stdout, done.stderr.decode())
    assert found.status == status, found
    return found


class RunningCommand:
    """A command that goes on until it is stopped; its pipes are open until the end of a `with` block."""

    def __init__(self, bootstrap: str, command: str, *arguments: str) -> None:
        self.process = subprocess.Popen(
            command_line(bootstrap, command, *arguments),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=REPOSITORY,
            bufsize=0,  # `finish` reads what `readline` has left
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(COMMAND_TIMEOUT_S)
        for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
            with suppress(BrokenPipeError):
                cast("IO[bytes]", pipe).close()

    @property
    def stdin(self) -> IO[bytes]:
        return cast("IO[bytes]", self.process.stdin)

    @property
    def stdout(self) -> IO[bytes]:
        return cast("IO[bytes]", self.process.stdout)

    def write(self, data: bytes) -> None:
        while data:
            data = data[self.stdin.write(data) :]

    def stop(self, number: signal.Signals = signal.SIGINT) -> Finished:
        """Send a signal and wait for the end."""
        self.process.send_signal(number)
        return self.finish()

    def finish(self) -> Finished:
        """Close the input and wait for the end."""
        stdout, stderr = self.process.communicate(timeout=COMMAND_TIMEOUT_S)
        return Finished(self.process.returncode, stdout, stderr.decode())
