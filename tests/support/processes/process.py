"""Child processes of the tests: started with a log file, awaited by a line of that log, ended by their own id.

Everything here is bounded by a timeout, and a failure carries the end of the log, because that is where the reason is.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.support.processes.processor_time import ProcessorTime

POLL_INTERVAL_S = 0.02
LOG_TAIL_LINES = 60


class ProcessError(AssertionError):
    """A child process ended, or did not print a line in time; the message ends with its log."""


class ManagedProcess:
    """One child process with its output in `log_path`; a restart appends to the same file."""

    def __init__(
        self, command: Sequence[str], log_path: Path, *, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        self.command = list(command)
        self.log_path = log_path
        self._cwd = cwd
        self._env = None if env is None else {**os.environ, **env}
        self._process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    @property
    def pid(self) -> int:
        return self._running().pid

    @property
    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        assert not self.is_running, f"already running: {self.command}"
        self._log_start = self.log_path.stat().st_size if self.log_path.exists() else 0
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=self._cwd,
                env=self._env,
                start_new_session=True,
            )

    @property
    def log_bytes(self) -> int:
        """How long the output of this process is so far."""
        return self.log_path.stat().st_size - self._log_start

    def log_text(self, start: int = 0) -> str:
        """The output of this process so far, from this byte on, without that of earlier ones with the same log file."""
        with self.log_path.open("rb") as log:
            log.seek(self._log_start + start)
            return log.read().decode(errors="replace")

    def wait_for_line(self, pattern: str, timeout_s: float) -> re.Match[str]:
        """Wait until the log holds `pattern`; fail at once if the process ends before it."""
        deadline = time.monotonic() + timeout_s
        return self._wait_for_line(pattern, lambda: f"within {timeout_s} s" if time.monotonic() > deadline else None)

    def wait_for_line_in_processor_time(self, pattern: str, limit_s: float) -> re.Match[str]:
        """Like `wait_for_line`, but the limit is what the process and its children use of the processor from now on."""
        return self._wait_for_line(pattern, ProcessorTime(self.pid, limit_s).refusal)

    def _wait_for_line(self, pattern: str, refusal: Callable[[], str | None]) -> re.Match[str]:
        while True:
            ended = not self.is_running
            match = re.search(pattern, self.log_text(), re.MULTILINE)
            if match:
                return match
            if ended:
                raise self.error(f"ended with status {self._running().returncode} before printing {pattern!r}")
            if (why := refusal()) is not None:
                raise self.error(f"did not print {pattern!r} {why}")
            time.sleep(POLL_INTERVAL_S)

    def wait(self, timeout_s: float) -> int:
        """Wait for the end of the process and return its exit status."""
        try:
            return self._running().wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise self.error(f"still runs after {timeout_s} s") from None

    def terminate(self, timeout_s: float = 30) -> int:
        """SIGTERM, and the exit status. A process that does not obey is killed and reported."""
        process = self._running()
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGCONT)  # a test that failed may have left it paused
        try:
            return process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise self.error(f"did not stop within {timeout_s} s of SIGTERM") from None

    def kill(self) -> None:
        """SIGKILL: the process gets no chance to write anything more."""
        process = self._running()
        process.kill()
        process.wait(10)

    def kill_group(self) -> None:
        """SIGKILL for the process and its children, as a container ends."""
        process = self._running()
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(10)

    def error(self, what: str) -> ProcessError:
        tail = "\n".join(self.log_text().splitlines()[-LOG_TAIL_LINES:])
        return ProcessError(f"{' '.join(self.command[-3:])} {what}; the end of its log:\n{tail}")

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None, f"never started: {self.command}"
        return self._process
