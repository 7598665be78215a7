"""The metadata service as a user starts it: `python -m odradek zookeeper`, a subprocess with a directory and a port."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.ports import free_port
from tests.support.processes.process import ManagedProcess
from tests.support.processes.python_path import python_path
from tests.support.processes.zookeeper_process import SETTINGS, ZooKeeperProcess

START_TIMEOUT_S = 20
STARTED = r"\[ZooKeeperServer\] started"


class OdradekZooKeeper(ZooKeeperProcess):
    """Has the methods of `apache.ZooKeeper`, and the same settings."""

    host = "127.0.0.1"

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None, port: int = 0) -> None:
        super().__init__()
        directory.mkdir(parents=True, exist_ok=True)
        self.port = port or free_port()
        config = directory / "zoo.cfg"
        lines = {**SETTINGS, **(settings or {}), "dataDir": str(directory / "data"), "clientPort": str(self.port)}
        config.write_text("".join(f"{key}={value}\n" for key, value in lines.items()))
        command = [sys.executable, "-m", "odradek", "zookeeper", "--config", str(config)]
        environment = {"PYTHONPATH": python_path(REPOSITORY / "src"), "PYTHONUNBUFFERED": "1"}
        self._process = ManagedProcess(command, directory / "zookeeper.log", cwd=directory, env=environment)

    @property
    def is_running(self) -> bool:
        return self._process.is_running

    def start(self) -> None:
        self._process.start()
        self._process.wait_for_line(STARTED, START_TIMEOUT_S)

    def stop(self) -> None:
        """SIGTERM; the service must end with status 0 and without having logged a bug."""
        if self._process.is_running:
            status = self._process.terminate()
            if status != 0:
                raise self._process.error(f"ended with status {status} instead of 0 after SIGTERM")
        log = self.log_text()
        assert "Traceback" not in log, log[log.index("Traceback") :][:4000]

    def kill(self) -> None:
        if self._process.is_running:
            self._process.kill()

    def log_text(self) -> str:
        return self._process.log_text()


@contextmanager
def running_zookeeper(directory: Path, settings: Mapping[str, str] | None = None) -> Iterator[OdradekZooKeeper]:
    """A service from its start to its clean stop; it is killed when the block raises."""
    service = OdradekZooKeeper(directory, settings)
    service.start()
    try:
        yield service
        service.stop()
    finally:
        service.kill()
