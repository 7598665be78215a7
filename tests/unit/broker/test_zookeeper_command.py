from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import pytest

from odradek.broker import cli, zookeeper_command
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.zookeeper.server import ZooKeeperServer


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    seen: list[str] = []

    async def start(server: ZooKeeperServer) -> None:
        seen.append(f"start {server.settings.host}:{server.settings.port}")
        asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGTERM)

    async def stop(server: ZooKeeperServer) -> None:
        seen.append("stop")

    monkeypatch.setattr(ZooKeeperServer, "start", start)
    monkeypatch.setattr(ZooKeeperServer, "stop", stop)
    return seen


def test_a_signal_stops_the_service(events: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["zookeeper", "--port", "7", "--data", str(tmp_path)]) == 0
    assert events == ["start 127.0.0.1:7", "stop"]
    printed = capsys.readouterr()
    assert f"data in       {tmp_path}" in printed.out
    assert "a production cluster uses an ensemble of Apache ZooKeeper" in printed.out
    assert "[ZooKeeperServer] started" in printed.err


def test_the_service_goes_on_without_its_banner(events: list[str], tmp_path: Path) -> None:
    with open("/dev/full", "w") as full, contextlib.redirect_stdout(full):
        assert cli.main(["zookeeper", "--port", "7", "--data", str(tmp_path)]) == 0
    assert events == ["start 127.0.0.1:7", "stop"]


def test_the_command_line_is_above_the_file(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    config = tmp_path / "zoo.cfg"
    config.write_text("clientPort=5\ntickTime=700\nserver.1=a:1:2\n")
    settings = zookeeper_command.read_settings(str(config), {"port": 6})
    assert (settings.port, settings.tick_time_ms) == (6, 700)
    assert "server.1 has no effect" in caplog.text


def test_a_start_that_is_refused_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    async def start(server: ZooKeeperServer) -> None:
        raise StartupError("no port")

    monkeypatch.setattr(ZooKeeperServer, "start", start)
    assert cli.main(["zookeeper", "--data", str(tmp_path)]) == 1
    assert capsys.readouterr().err == "odradek: no port\n"
    assert cli.main(["zookeeper", "--config", str(tmp_path / "none.cfg")]) == 1


def test_a_failure_ends_with_status_1(events: list[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    async def start(server: ZooKeeperServer) -> None:
        server.failed.set_exception(OSError("the disk"))

    monkeypatch.setattr(ZooKeeperServer, "start", start)
    assert cli.main(["zookeeper", "--data", str(tmp_path)]) == 1
    assert events == ["stop"]
