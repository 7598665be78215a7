"""The processes that the demo starts: a broker, and commands one after the other. All end when the block ends."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from spark_jobs.common.code_archive import CHECKOUT
from spark_jobs.common.job import JobError, say

STOP_TIMEOUT_S = 30
READY = "the broker of the demo is ready"
NOISE = "WARNING: Using incubator modules"  # the JVM says so at each start of Spark
LISTENING = re.compile(r"PLAINTEXT://(\S+)")


class ChildProcesses:
    """Starts processes, and ends those that still run when the block is left."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._broker: subprocess.Popen[str] | None = None
        self._command: subprocess.Popen[str] | None = None
        self._environment = {**os.environ, "PYTHONPATH": str(CHECKOUT)}

    def __enter__(self) -> ChildProcesses:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (self._command, self._broker):
            if process is not None:
                _end(process)

    def start_broker(self) -> str:
        """Start a broker on a free port of this machine. Returns its address. Raises: JobError."""
        log = self._folder / "broker.log"
        command = [sys.executable, "-m", "odradek", "serve", "--port", "0", "--data", str(self._folder / "broker-data")]
        with log.open("w") as file:
            self._broker = subprocess.Popen(
                [*command, "--ready-line", READY],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=file,
                text=True,
                env=self._environment,
            )
        address = None
        assert self._broker.stdout is not None
        for line in self._broker.stdout:
            if found := LISTENING.search(line):
                address = found[1]
            if READY in line and address is not None:
                threading.Thread(target=_read_on, args=(self._broker.stdout,), daemon=True).start()
                return address
        raise JobError(f"the broker has not started: {log} says why")

    def run(
        self, module: str, arguments: Sequence[str], *, source: str | None = None, output: Path | None = None
    ) -> None:
        """Run a module of Python to its end: its output goes to the terminal, indented, or to a file.

        `source`: its standard input. Raises: JobError if its status is not 0.
        """
        say(f"$ python -m {module} {shlex.join(arguments)}")
        self._command = subprocess.Popen(
            [sys.executable, "-m", module, *arguments],
            stdin=subprocess.DEVNULL if source is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if output is None else None,
            text=True,
            env=self._environment,
            cwd=self._folder,
        )
        if source is not None:
            threading.Thread(target=_write, args=(self._command.stdin, source), daemon=True).start()
        assert self._command.stdout is not None
        with self._command.stdout as printed:
            if output is not None:
                output.write_text(printed.read())
            else:
                for line in printed:
                    if not line.startswith(NOISE):
                        say(f"    {line.rstrip()}")
        status = self._command.wait()
        if status != 0:
            raise JobError(f"{module} has ended with status {status}")


def _read_on(stream: IO[str]) -> None:
    """Keep a pipe empty, or its writer would wait."""
    for _ in stream:
        pass


def _write(stream: IO[str], text: str) -> None:
    with stream:
        stream.write(text)


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdout is not None:
        process.stdout.close()
