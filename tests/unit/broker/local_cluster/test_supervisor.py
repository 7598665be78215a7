from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from odradek.broker import cli
from odradek.broker.local_cluster import supervisor
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.zookeeper.server import ZooKeeperServer

SIGTERM = lambda: os.kill(os.getpid(), signal.SIGTERM)  # noqa: E731


class _Broker:
    """A broker that serves at once; `script` runs when the last one does."""

    events: list[str]
    script: Callable[[list[_Broker]], object]
    all: list[_Broker]
    starts = True
    stops = True

    def __init__(self, broker_id: int, command: Sequence[str], write_line: Callable[[str], None]) -> None:
        loop = asyncio.get_running_loop()
        self.broker_id = broker_id
        self.command = command
        self.write_line = write_line
        self.address = f"127.0.0.1:{7000 + broker_id}"
        self.started: asyncio.Future[bool] = loop.create_future()
        self.ended: asyncio.Future[int] = loop.create_future()
        self.all.append(self)

    async def start(self) -> None:
        self.events.append(f"start {self.broker_id}")
        if not self.starts:
            self.started.set_result(False)
            self.ended.set_result(1)
            return
        self.started.set_result(True)
        if self.broker_id == 2:
            asyncio.get_running_loop().call_later(0.01, type(self).script, self.all)

    def terminate(self) -> None:
        self.events.append(f"stop {self.broker_id}")
        if self.stops and not self.ended.done():
            self.ended.set_result(0)

    def kill(self) -> None:
        self.events.append(f"kill {self.broker_id}")
        self.ended.set_result(-9)


@pytest.fixture
def brokers(monkeypatch: pytest.MonkeyPatch) -> type[_Broker]:
    kind = type("Broker", (_Broker,), {"events": [], "all": [], "script": staticmethod(lambda brokers: SIGTERM())})

    async def start(server: ZooKeeperServer) -> None:
        kind.events.append(f"start {os.path.basename(server.settings.directory)}")

    async def stop(server: ZooKeeperServer) -> None:
        kind.events.append("stop zookeeper")

    monkeypatch.setattr(supervisor, "BrokerProcess", kind)
    monkeypatch.setattr(supervisor, "STOP_TIMEOUT_S", 0.01)
    monkeypatch.setattr(ZooKeeperServer, "start", start)
    monkeypatch.setattr(ZooKeeperServer, "stop", stop)
    return kind


def _serve() -> int:
    return cli.main(["serve", "--brokers", "3", "--port", "7000", "--ready-line", "all serve"])


STARTS = ["start zookeeper", "start 0", "start 1", "start 2"]
STOPS = ["stop 2", "stop 1", "stop 0", "stop zookeeper"]


def test_a_signal_stops_the_brokers_in_order_and_the_service_last(
    brokers: type[_Broker], capsys: pytest.CaptureFixture[str]
) -> None:
    assert _serve() == 0
    assert brokers.events == [*STARTS, *STOPS]
    printed = capsys.readouterr().out
    assert "bootstrap servers  127.0.0.1:7000,127.0.0.1:7001,127.0.0.1:7002" in printed
    assert "\nall serve\n" in printed
    assert "The cluster has stopped" in printed


def test_faults_are_those_of_each_broker(brokers: type[_Broker]) -> None:
    options = ["--faults", "rules.yaml", "--faults-listener", "127.0.0.1:8000", "--log-level", "ERROR"]
    assert cli.main(["serve", "--brokers", "3", *options]) == 0
    for number, broker in enumerate(brokers.all):
        words = [f"127.0.0.1:{8000 + number}" if word == "127.0.0.1:8000" else word for word in options]
        assert [word for word in broker.command if word in words] == [*words[4:], *words[:4]]


def test_a_broker_that_dies_ends_the_cluster_with_status_1(
    brokers: type[_Broker], capsys: pytest.CaptureFixture[str]
) -> None:
    brokers.script = staticmethod(lambda brokers: brokers[1].ended.set_result(-9))  # type: ignore[assignment]
    assert _serve() == 1
    assert brokers.events == [*STARTS, *STOPS]
    assert "The broker 1 has ended with signal 9; the cluster stops" in capsys.readouterr().out


def test_a_start_that_fails_stops_the_others(brokers: type[_Broker], capsys: pytest.CaptureFixture[str]) -> None:
    brokers.starts = False
    assert _serve() == 1
    assert brokers.events == [*STARTS, *STOPS]
    printed = capsys.readouterr().out
    assert "has ended with status 1" in printed
    assert "bootstrap servers" not in printed
    assert "all serve" not in printed


def test_a_broker_that_does_not_stop_is_killed(brokers: type[_Broker]) -> None:
    brokers.stops = False
    assert _serve() == 0
    assert brokers.events[4:] == ["stop 2", "kill 2", "stop 1", "kill 1", "stop 0", "kill 0", "stop zookeeper"]


def test_what_cannot_start_is_one_line(
    brokers: type[_Broker], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["serve", "--brokers", "0"]) == 1
    assert capsys.readouterr().err.startswith("odradek: --brokers 0: ")

    async def start(server: ZooKeeperServer) -> None:
        raise StartupError("no port")

    monkeypatch.setattr(ZooKeeperServer, "start", start)
    assert _serve() == 1
    assert capsys.readouterr().err == "odradek: no port\n"


def test_settings_that_cannot_be_read_are_refused_before_anything_starts(
    brokers: type[_Broker], capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert cli.main(["serve", "none.properties", "--brokers", "1"]) == 1
    assert capsys.readouterr().err == "odradek: Cannot read none.properties: No such file or directory\n"
    file = tmp_path / "server.properties"
    file.write_text("config.providers=vault\nconfig.providers.vault.class=org.apache.Vault\n")
    assert cli.main(["serve", str(file), "--brokers", "1"]) == 1
    printed = capsys.readouterr().err
    assert printed.count("\n") == 1
    assert "Could not load config provider class" in printed
    assert brokers.events == []


def test_the_cluster_goes_on_when_nobody_reads_its_output(brokers: type[_Broker]) -> None:
    def script(all_brokers: list[_Broker]) -> None:
        for broker in all_brokers:
            broker.write_line("a line")
        SIGTERM()

    brokers.script = staticmethod(script)
    for reads, writes in (os.pipe(), (None, os.open("/dev/full", os.O_WRONLY))):
        if reads is not None:
            os.close(reads)
        with open(writes, "w") as unread, contextlib.redirect_stdout(unread):
            brokers.events.clear()
            brokers.all.clear()
            assert _serve() == 0
            assert brokers.events == [*STARTS, *STOPS]
            with contextlib.suppress(OSError):
                unread.close()
