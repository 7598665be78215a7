"""The process `odradek serve`: how it ends, and what it refuses to start with."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.processes.apache.jvm import REPOSITORY
from tests.support.processes.odradek_process import ADDRESS, START_TIMEOUT_S, STARTED
from tests.support.processes.process import ManagedProcess
from tests.support.processes.python_path import python_path

ENVIRONMENT = {"PYTHONPATH": python_path(REPOSITORY / "src")}
COMMAND = [sys.executable, "-m", "odradek", "serve"]


class Daemon:
    def __init__(self, directory: Path, *arguments: str) -> None:
        self.process = ManagedProcess(
            [*COMMAND, *arguments], directory / f"{len(os.listdir(directory))}.log", cwd=directory, env=ENVIRONMENT
        )

    def start(self) -> int:
        self.process.start()
        self.process.wait_for_line(STARTED, START_TIMEOUT_S)
        return int(self.process.wait_for_line(ADDRESS, START_TIMEOUT_S)[1])


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    running = Daemon(tmp_path, "--port", "0", "--data", "data")
    running.start()
    yield running
    if running.process.is_running:
        running.process.kill()


def refused(directory: Path, *arguments: str, **environment: str) -> str:
    """The one line with which `serve` declines."""
    done = subprocess.run(
        [*COMMAND, *arguments],
        cwd=directory,
        env={**os.environ, **ENVIRONMENT, **environment},
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert done.returncode == 1, done
    assert "Traceback" not in done.stderr, done.stderr
    lines = [line for line in done.stderr.splitlines() if line.startswith("odradek: ")]
    assert len(lines) == 1, done.stderr
    return lines[0]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_stops_the_broker_in_order(daemon: Daemon, number: signal.Signals) -> None:
    os.kill(daemon.process.pid, number)
    assert daemon.process.wait(10) == 0
    assert "Traceback" not in daemon.process.log_text()


def test_banner_names_address_directory_and_ids(daemon: Daemon, tmp_path: Path) -> None:
    text = daemon.process.wait_for_line(r"cluster id +\S{22}$", 10).string
    assert f"data in       {tmp_path / 'data'}" in text
    assert "node id       0" in text


@pytest.mark.parametrize("loop", ["asyncio", "uvloop"])
def test_both_event_loops(tmp_path: Path, loop: str) -> None:
    running = Daemon(tmp_path, "--port", "0", "--data", "data", "--event-loop", loop)
    with socket.create_connection(("127.0.0.1", running.start())):
        assert running.process.terminate() == 0


def test_starts_again_on_its_data(tmp_path: Path) -> None:
    for _ in range(2):
        running = Daemon(tmp_path, "--port", "0", "--data", "data")
        running.start()
        assert running.process.terminate() == 0


def test_settings_come_from_file_environment_and_override(tmp_path: Path) -> None:
    (tmp_path / "server.properties").write_text(
        "broker.id=1\nlog.dirs=data\nlisteners=PLAINTEXT://127.0.0.1:0\nfoo=1\n"
    )
    running = Daemon(tmp_path, "server.properties", "--override", "broker.id=3")
    running.start()
    assert "[KafkaServer id=3] started" in running.process.log_text()
    assert "The configuration 'foo' (from server.properties) is not known" in running.process.log_text()
    assert running.process.terminate() == 0


def test_port_that_is_taken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        line = refused(tmp_path, "--port", str(port), "--data", "data")
    assert line == f"odradek: Socket server failed to bind to 127.0.0.1:{port}: Address already in use."


def test_directory_that_is_in_use(daemon: Daemon, tmp_path: Path) -> None:
    assert "Failed to acquire lock on file .lock" in refused(tmp_path, "--port", "0", "--data", "data")
    assert daemon.process.is_running


def test_directory_of_another_broker(daemon: Daemon, tmp_path: Path) -> None:
    assert daemon.process.terminate() == 0
    line = refused(tmp_path, "--port", "0", "--data", "data", "--override", "broker.id=5")
    assert "broker.id 5 doesn't match stored broker.id 0" in line


def test_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "file" in refused(tmp_path, "--port", "0", "--data", "file/data")


def test_bad_value_from_the_environment(tmp_path: Path) -> None:
    line = refused(tmp_path, KAFKA_NUM_PARTITIONS="some")
    assert "for configuration num.partitions" in line
    assert "environment variable KAFKA_NUM_PARTITIONS" in line
