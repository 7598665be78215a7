"""The daemon as a user starts it: `python -m odradek serve`, a subprocess with a data directory and a free port.

It has the port from its first start on: between two starts, nobody else gets it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from tests.support.broker import FAST_SETTINGS
from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.ports import free_port
from tests.support.processes.process import ManagedProcess
from tests.support.processes.python_path import python_path

START_TIMEOUT_S = 20
STOP_TIMEOUT_S = 20
STARTED = r"\[KafkaServer id=\d+\] started"
ADDRESS = r"(?:PLAINTEXT://)?127\.0\.0\.1:(\d{2,5})"


class OdradekBroker:
    """One Odradek broker with embedded metadata."""

    target = "odradek"
    host = "127.0.0.1"
    module = "odradek"
    python_path = (REPOSITORY / "src",)

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None, port: int = 0) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.log_dir = directory / "logs"
        self._directory = directory
        self._settings = {key: value for key, value in FAST_SETTINGS.items() if not key.startswith("zookeeper.")}
        self._settings.update(settings or {})
        self._process: ManagedProcess | None = None
        self.port = port or free_port()
        self.start_timeout_s: float = START_TIMEOUT_S
        self.stop_timeout_s: float = STOP_TIMEOUT_S
        self.options: Sequence[str] = ()
        """More arguments behind `serve`."""
        self.prefix: Sequence[str] = ()
        """A command that runs the broker's command, for example in another namespace."""

    @property
    def bootstrap(self) -> str:
        return f"{self.host}:{self.port}"

    @property
    def pid(self) -> int:
        return self._running().pid

    def launch(self) -> None:
        """Start the process and do not wait for it."""
        command = [*self.prefix, sys.executable, "-m", self.module, "serve", *self.options]
        if "listeners" not in self._settings:
            command += ["--host", self.host, "--port", str(self.port)]
        if "log.dirs" not in self._settings:
            command += ["--data", str(self.log_dir)]
        for key, value in self._settings.items():
            command += ["--override", f"{key}={value}"]
        environment = {"PYTHONPATH": python_path(*self.python_path), "PYTHONUNBUFFERED": "1"}
        self._process = ManagedProcess(command, self._directory / "odradek.log", cwd=self._directory, env=environment)
        self._process.start()

    def start(self) -> None:
        self.launch()
        self._running().wait_for_line(STARTED, self.start_timeout_s)

    def stop(self) -> None:
        process = self._running()
        status = process.terminate(self.stop_timeout_s)
        if status != 0:
            raise process.error(f"ended with status {status} instead of 0 after SIGTERM")

    def stop_cleanly(self) -> None:
        """Stop it, with exit status 0, and look whether it has logged a bug."""
        self.stop()
        self.check_log()

    def check_log(self) -> None:
        """Raises AssertionError, with the first traceback, when the broker has logged one."""
        log = self.log_text()
        assert "Traceback" not in log, log[log.index("Traceback") :][:4000]

    def wait_for_line(self, pattern: str) -> None:
        """Wait until the process has printed something that the pattern matches."""
        self._running().wait_for_line(pattern, START_TIMEOUT_S)

    def wait_for_end(self) -> int:
        """Wait until the process ends by itself; its exit status."""
        return self._running().wait(STOP_TIMEOUT_S)

    def kill(self) -> None:
        self._running().kill()

    def close(self) -> None:
        """Kill the process if it still runs: its data is not needed any more."""
        if self._process is not None and self._process.is_running:
            self._process.kill()

    @property
    def log_bytes(self) -> int:
        return self._running().log_bytes

    def log_text(self, start: int = 0) -> str:
        return self._running().log_text(start)

    def _running(self) -> ManagedProcess:
        assert self._process is not None, "never started"
        return self._process


AnyOdradekBroker = TypeVar("AnyOdradekBroker", bound=OdradekBroker)


@contextmanager
def running(broker: AnyOdradekBroker) -> Iterator[AnyOdradekBroker]:
    """A broker from its start to its clean stop; it is killed when the block raises."""
    broker.start()
    try:
        yield broker
        broker.stop_cleanly()
    finally:
        broker.close()
