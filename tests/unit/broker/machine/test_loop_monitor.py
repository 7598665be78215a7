from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable

import pytest

from odradek.broker.machine.loop_monitor import TICK_MS, UNSEEN, LoopMonitor, describe
from odradek.timer.clock import ManualClock, SystemClock
from tests.support.async_test import async_test


class FakeLoop:
    """Holds the one callback that waits."""

    def __init__(self) -> None:
        self.callback: Callable[[], object] | None = None

    def call_later(self, delay: float, callback: Callable[[], object], /) -> object:
        assert delay * 1000 == TICK_MS
        self.callback = callback
        return None


class Watched:
    """A monitor whose loop runs its tick when the test says so."""

    def __init__(self, pause_ms: int = 50) -> None:
        self.clock = ManualClock(1000)
        self.loop = FakeLoop()
        self.monitor = LoopMonitor(self.loop, self.clock, pause_ms)
        self.monitor.start()

    def tick_after(self, ms: int) -> None:
        assert self.loop.callback is not None
        self.clock.advance(ms)
        self.loop.callback()


@pytest.fixture
def watched() -> object:
    made = Watched()
    yield made
    made.monitor.stop()


def test_lateness_is_counted(watched: Watched) -> None:
    for ms in (TICK_MS, TICK_MS, TICK_MS + 3, TICK_MS - 1, TICK_MS + 20):
        watched.tick_after(ms)
    assert watched.monitor.lateness_ms == {0: 3, 3: 1, 20: 1}


def test_percentiles(watched: Watched) -> None:
    for late_ms, ticks in ((0, 980), (7, 18), (60, 2)):
        for _ in range(ticks):
            watched.tick_after(TICK_MS + late_ms)
    assert [watched.monitor.percentile_ms(share) for share in (0.5, 0.99, 0.998, 0.999)] == [0, 7, 7, 60]
    assert watched.monitor.summary() == (
        "1000 ticks, late by p50 0 ms, p99 7 ms, p99.9 60 ms, longest 60 ms; 2 beyond 50 ms"
    )


def test_a_pause_is_logged_beyond_the_limit_and_not_at_it(watched: Watched, caplog: pytest.LogCaptureFixture) -> None:
    watched.tick_after(TICK_MS + 50)
    assert not caplog.records
    watched.tick_after(TICK_MS + 51)
    assert "The event loop was held up for 51 ms" in caplog.text
    assert UNSEEN in caplog.text


def test_callback_found_in_one_pause_is_not_logged_for_the_next(
    watched: Watched, caplog: pytest.LogCaptureFixture
) -> None:
    watched.monitor._seen = (watched.clock.monotonic_ms(), "a callback")
    watched.tick_after(TICK_MS + 60)
    watched.tick_after(TICK_MS + 60)
    assert [record.getMessage().rsplit(" by ")[1] for record in caplog.records] == ["a callback", UNSEEN]


def test_no_tick_no_figures() -> None:
    monitor = LoopMonitor(FakeLoop(), ManualClock(), 50)
    assert monitor.summary() == "0 ticks, late by p50 0 ms, p99 0 ms, p99.9 0 ms, longest 0 ms; 0 beyond 50 ms"


def innermost() -> str:
    return describe(sys._getframe())


def test_a_callback_is_named_with_its_innermost_function() -> None:
    async def main() -> str:
        found: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        asyncio.get_running_loop().call_soon(lambda: found.set_result(innermost()))
        return await found

    outer, inner = asyncio.run(main()).split(", in ")
    assert ".main.<locals>.<lambda>:" in outer
    assert "test_loop_monitor.innermost:" in inner


@async_test
async def test_the_thread_finds_the_callback_that_holds_the_loop_up() -> None:
    monitor = LoopMonitor(asyncio.get_running_loop(), SystemClock(), 20)
    lines: list[str] = []
    logged: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())
            if not logged.done():
                logged.set_result(None)

    listener = Listener(logging.WARNING)
    logging.getLogger("odradek.broker.machine.loop_monitor").addHandler(listener)
    try:
        monitor.start()
        asyncio.get_running_loop().call_soon(held_up, monitor)
        await logged
    finally:
        monitor.stop()
        logging.getLogger("odradek.broker.machine.loop_monitor").removeHandler(listener)
    assert "held_up" in lines[0]


def held_up(monitor: LoopMonitor) -> None:
    """Longer than the limit, and until the thread has seen it."""
    clock = SystemClock()
    end_ms = clock.monotonic_ms() + 2 * (TICK_MS + monitor.pause_ms)
    while clock.monotonic_ms() < end_ms or "held_up" not in monitor._seen[1]:
        threading.Event().wait(0.01)


def test_what_a_pause_is_blamed_on_was_seen_before_the_tick(
    watched: Watched, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = watched.monitor._times

    def seen_meanwhile() -> object:
        watched.monitor._seen = (watched.monitor._last_tick_ms, "the tick itself")
        return times()

    monkeypatch.setattr(watched.monitor, "_times", seen_meanwhile)
    watched.monitor._seen = (watched.clock.monotonic_ms(), "a callback")
    watched.tick_after(TICK_MS + 60)
    assert caplog.text.rstrip().endswith(" by a callback")
