from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import re
import resource
import signal
import sys
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace

import pytest

from odradek.broker import daemon, server
from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.faults.fault_setup import FaultSetup
from odradek.broker.machine import allocator
from odradek.broker.machine.startup_error import StartupError
from odradek.controller.znodes.registration import RegistrationRefused
from odradek.storage.config.config_def import ConfigError
from odradek.storage.disk.log_dir import LogDirError

READY_LINES = ("ready", "for clients")


class _Server:
    """A broker whose start and stop the test controls; `events` lists what happened, in order."""

    events: list[str]
    start_error: Exception | None
    starts: bool
    instance: _Server

    def __init__(self, config: BrokerConfig, prepare: Callable[[_Server], Awaitable[None]] | None = None) -> None:
        self.prepare = prepare
        self.faults, self.timer = "the faults", "the timer"
        self.failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.addresses = ("PLAINTEXT://127.0.0.1:9092",)
        self.broker_id = 7
        self.cluster_id = "the-cluster"
        self.is_started = asyncio.Event()
        type(self).instance = self

    async def start(self) -> None:
        self.events.append("start")
        self.collects = gc.isenabled()
        if self.start_error is not None:
            raise self.start_error
        try:
            if not self.starts:
                await asyncio.get_running_loop().create_future()
        except asyncio.CancelledError:
            self.events.append("start cancelled")
            raise
        if self.prepare is not None:
            await self.prepare(self)
        self.is_started.set()

    async def stop(self) -> None:
        self.events.append("stop")


class _Process:
    """What the daemon does to its process, recorded instead of done."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.handlers: dict[signal.Signals, Callable[[], None]] = {}
        self.killed: list[tuple[str, int]] = []
        self.descriptor_limits: list[tuple[int, int]] = []
        monkeypatch.setattr(signal, "signal", self._set_handler)
        monkeypatch.setattr(signal, "getsignal", lambda number: signal.SIG_DFL)
        monkeypatch.setattr(daemon.os, "kill", lambda pid, number: self.killed.append(("kill", number)))
        monkeypatch.setattr(gc, "freeze", lambda: None)
        monkeypatch.setattr(gc, "set_threshold", lambda *thresholds: None)
        monkeypatch.setattr(allocator, "set_thresholds", lambda: True)
        monkeypatch.setattr(resource, "getrlimit", lambda what: (1024, 4096))
        monkeypatch.setattr(resource, "setrlimit", lambda what, limits: self.descriptor_limits.append(limits))

    def _set_handler(self, number: int, handler: object) -> None:
        if handler is signal.SIG_DFL:
            self.killed.append(("default", number))

    def loop(self) -> asyncio.AbstractEventLoop:
        loop = asyncio.new_event_loop()

        def add_signal_handler(number: signal.Signals, handler: Callable[..., None], *args: object) -> None:
            self.handlers[number] = lambda: handler(*args)

        loop.add_signal_handler = add_signal_handler  # type: ignore[method-assign,assignment]
        return loop


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> type[_Server]:
    kind = type("Server", (_Server,), {"events": [], "start_error": None, "starts": True})
    monkeypatch.setattr(server, "KafkaServer", kind)
    return kind


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> _Process:
    process = _Process(monkeypatch)
    monkeypatch.setattr(daemon, "_loop_factory", lambda name: process.loop)
    return process


def serve_until(
    script: Callable[[], object], broker: type[_Server], process: _Process, faults: FaultSetup | None = None
) -> int:
    """Run a daemon; `script` is called once the broker has started, or hangs in its start."""

    async def serve(config: BrokerConfig, ready_lines: Sequence[str], faults: FaultSetup | None) -> int:
        serving = asyncio.ensure_future(serve_as_it_is(config, ready_lines, faults))
        while not broker.events:
            await asyncio.sleep(0)
        if broker.starts and broker.start_error is None:
            await broker.instance.is_started.wait()
            for _ in range(5):
                await asyncio.sleep(0)
        script()
        return await serving

    serve_as_it_is = daemon._serve
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(daemon, "_serve", serve)
        return daemon.run(BrokerConfig({"log.dirs": "data"}), "auto", READY_LINES, faults)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_signal_stops_the_broker_in_order(number: signal.Signals, broker: type[_Server], process: _Process) -> None:
    assert serve_until(lambda: process.handlers[number](), broker, process) == 0
    assert broker.events == ["start", "stop"]
    assert process.killed == []


def test_terminal_that_goes_away_is_ignored_by_a_broker_that_was_started_so(
    broker: type[_Server], process: _Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(signal, "getsignal", lambda number: signal.SIG_IGN)  # as a job in the background of a script
    assert serve_until(lambda: process.handlers[signal.SIGTERM](), broker, process) == 0
    assert set(process.handlers) == {signal.SIGTERM, signal.SIGINT}


def test_second_signal_ends_the_process(broker: type[_Server], process: _Process) -> None:
    def twice() -> None:
        process.handlers[signal.SIGTERM]()
        assert process.killed == []
        process.handlers[signal.SIGINT]()

    serve_until(twice, broker, process)
    assert process.killed == [("default", signal.SIGINT), ("kill", signal.SIGINT)]


def test_signal_during_the_start_breaks_it_off(
    broker: type[_Server], process: _Process, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.starts = False
    assert serve_until(lambda: process.handlers[signal.SIGTERM](), broker, process) == 0
    assert broker.events == ["start", "start cancelled"]  # which cleans up after itself
    assert capsys.readouterr().out == ""


def test_later_failure_stops_the_broker_and_is_logged(
    broker: type[_Server], process: _Process, caplog: pytest.LogCaptureFixture
) -> None:
    def fail() -> None:
        broker.instance.failed.set_exception(OSError("the disk is gone"))

    with caplog.at_level(logging.CRITICAL, "odradek.broker.daemon"):
        assert serve_until(fail, broker, process) == 1
    assert broker.events == ["start", "stop"]
    assert "The broker cannot go on: the disk is gone" in caplog.text


class _Faults(FaultSetup):
    def __init__(self, events: list[str]) -> None:
        self._events = events

    async def start(self, faults: object, timer: object) -> None:
        self._events.append(f"{faults} by {timer}")

    async def close(self) -> None:
        self._events.append("faults closed")


def test_faults_are_on_before_the_broker_has_started_and_closed_before_it_stops(
    broker: type[_Server], process: _Process
) -> None:
    serve_until(lambda: process.handlers[signal.SIGTERM](), broker, process, _Faults(broker.events))
    assert broker.events == ["start", "the faults by the timer", "faults closed", "stop"]


def test_a_broker_goes_on_without_its_banner(broker: type[_Server], process: _Process) -> None:
    with open("/dev/full", "w") as full, contextlib.redirect_stdout(full):
        assert serve_until(lambda: process.handlers[signal.SIGTERM](), broker, process) == 0
    assert broker.events == ["start", "stop"]


def test_banner_says_where_the_broker_is(
    broker: type[_Server], process: _Process, capsys: pytest.CaptureFixture[str]
) -> None:
    serve_until(lambda: process.handlers[signal.SIGTERM](), broker, process)
    title, *lines = capsys.readouterr().out.splitlines()
    assert title.startswith("Odradek ")
    assert [re.split(" {2,}", line.strip()) for line in lines] == [
        ["listening on", "PLAINTEXT://127.0.0.1:9092"],
        ["data in", os.path.abspath("data")],
        ["node id", "7"],
        ["cluster id", "the-cluster"],
        *([line] for line in READY_LINES),
    ]


@pytest.mark.parametrize(
    "error",
    [
        StartupError("no"),
        ConfigError("no"),
        LogDirError("no"),
        RegistrationRefused("no"),
        PermissionError(13, "no", "/data"),
    ],
)
def test_refusal_to_start_is_a_line_and_status_1(
    error: Exception, broker: type[_Server], process: _Process, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.start_error = error
    assert serve_until(lambda: None, broker, process) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert "no" in err
    assert "Traceback" not in err


def test_bug_in_the_start_is_not_taken_for_a_refusal(broker: type[_Server], process: _Process) -> None:
    broker.start_error = ZeroDivisionError("bug")
    with pytest.raises(ZeroDivisionError):
        serve_until(lambda: None, broker, process)


def test_failure_during_a_start_that_fails_is_not_reported_twice(
    broker: type[_Server], process: _Process, caplog: pytest.LogCaptureFixture
) -> None:
    """asyncio logs an exception that nobody has retrieved when its future is collected."""
    broker.start_error = StartupError("no")
    serve_until(lambda: broker.instance.failed.set_exception(OSError("lost")), broker, process)
    del broker.instance
    broker.start_error = None  # its traceback holds the broker
    gc.collect()
    assert "never retrieved" not in caplog.text


# -- the event loop


def test_plain_event_loop_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", SimpleNamespace(new_event_loop="uvloop's"))
    assert daemon._loop_factory("asyncio") is asyncio.new_event_loop


@pytest.mark.parametrize("name", ["auto", "uvloop"])
def test_uvloop_where_it_is_installed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", SimpleNamespace(new_event_loop="uvloop's"))
    assert daemon._loop_factory(name) == "uvloop's"


def test_without_uvloop_the_plain_one_serves_unless_uvloop_was_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "uvloop", None)
    assert daemon._loop_factory("auto") is asyncio.new_event_loop
    with pytest.raises(StartupError, match="uvloop is not installed"):
        daemon._loop_factory("uvloop")


# -- descriptors


def test_soft_limit_of_descriptors_is_raised_to_the_hard_one(process: _Process) -> None:
    daemon.raise_descriptor_limit()
    assert process.descriptor_limits == [(4096, 4096)]


def test_limit_that_is_high_already_is_left_alone(process: _Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda what: (4096, 4096))
    daemon.raise_descriptor_limit()
    assert process.descriptor_limits == []


@pytest.mark.parametrize("error", [OSError("not permitted"), ValueError("not allowed to raise maximum limit")])
def test_limit_that_cannot_be_raised_is_a_warning(
    error: Exception, process: _Process, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def refuse(what: int, limits: tuple[int, int]) -> None:
        raise error

    monkeypatch.setattr(resource, "setrlimit", refuse)
    with caplog.at_level(logging.WARNING, "odradek.broker.daemon"):
        daemon.raise_descriptor_limit()
    assert f"The limit of open files stays at 1024: {error}" in caplog.text


def test_run_raises_the_limit(broker: type[_Server], process: _Process) -> None:
    serve_until(lambda: process.handlers[signal.SIGTERM](), broker, process)
    assert process.descriptor_limits == [(4096, 4096)]


def test_garbage_collector_looks_at_few_objects_at_a_time() -> None:
    looked_through: list[int] = []

    def look(phase: str, info: dict[str, int]) -> None:
        if phase == "start" and info["generation"] == 1:
            looked_through.append(len(gc.get_objects(0)) + len(gc.get_objects(1)))

    before = gc.get_threshold()
    gc.collect()
    gc.set_threshold(*daemon.GC_THRESHOLDS)
    gc.callbacks.append(look)
    try:
        kept = [[number] for number in range(200_000)]
    finally:
        gc.callbacks.remove(look)
        gc.set_threshold(*before)
    assert len(kept) == 200_000
    assert len(looked_through) >= 5
    assert max(looked_through) <= 12_000


def test_garbage_is_collected_from_the_start_on(broker: type[_Server], process: _Process) -> None:
    """`odradek serve` turns collections off while modules are imported."""
    gc.disable()
    try:
        serve_until(lambda: process.handlers[signal.SIGTERM](), broker, process)
    finally:
        gc.enable()
    assert broker.instance.collects
