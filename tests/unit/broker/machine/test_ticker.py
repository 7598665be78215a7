"""The ticker on a loop that is turned by hand."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from odradek.broker.machine.ticker import ADVANCE_BUDGET_MS, LONGEST_SLEEP_MS, Ticker
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer


class FakeHandle:
    def __init__(self, delay: float, when_ms: float, callback: Callable[[], object]) -> None:
        self.delay = delay
        self.when_ms = when_ms
        self.callback = callback
        self.cancelled = False

    def cancel(self) -> None:
        self.cancelled = True


class FakeLoop:
    """Remembers every `call_later`; time is the clock's."""

    def __init__(self, clock: ManualClock) -> None:
        self.clock = clock
        self.handles: list[FakeHandle] = []

    def call_later(self, delay: float, callback: Callable[[], object], /) -> FakeHandle:
        handle = FakeHandle(delay, self.clock.monotonic_ms() + delay * 1000, callback)
        self.handles.append(handle)
        return handle

    @property
    def armed(self) -> list[FakeHandle]:
        return [handle for handle in self.handles if not handle.cancelled]

    def turn(self) -> None:
        """Sleep until the one armed handle is due and call it."""
        (handle,) = self.armed
        self.handles.clear()
        self.clock.advance(max(0, round(handle.when_ms) - self.clock.monotonic_ms()))
        handle.callback()


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(5_000)


@pytest.fixture
def loop(clock: ManualClock) -> FakeLoop:
    return FakeLoop(clock)


@pytest.fixture
def timer(clock: ManualClock) -> SystemTimer:
    return SystemTimer(clock)


@pytest.fixture
def ticker(loop: FakeLoop, clock: ManualClock, timer: SystemTimer) -> Ticker:
    ticker = Ticker(loop, clock, timer)
    ticker.start()
    return ticker


@pytest.mark.usefixtures("ticker")
def test_sleeps_forever_while_nothing_waits(loop: FakeLoop) -> None:
    assert loop.handles == []


@pytest.mark.usefixtures("ticker")
def test_a_task_runs_at_its_time(loop: FakeLoop, clock: ManualClock, timer: SystemTimer) -> None:
    ran_at: list[int] = []
    timer.schedule(450, lambda: ran_at.append(clock.monotonic_ms()))
    while loop.armed:
        loop.turn()
    assert ran_at == [5_450]


@pytest.mark.usefixtures("ticker")
def test_an_expired_task_runs_in_the_next_turn(loop: FakeLoop, timer: SystemTimer) -> None:
    ran: list[str] = []
    timer.schedule(0, lambda: ran.append("now"))
    assert ran == []
    assert [handle.delay for handle in loop.armed] == [0]
    loop.turn()
    assert ran == ["now"]
    assert loop.armed == []


def test_tasks_added_before_the_start_are_seen(loop: FakeLoop, clock: ManualClock, timer: SystemTimer) -> None:
    timer.schedule(7, lambda: None)
    clock.advance(100)
    Ticker(loop, clock, timer).start()
    assert [handle.delay for handle in loop.armed] == [0], "overdue: at once"


@pytest.mark.usefixtures("ticker")
def test_handle_is_armed_again_for_an_earlier_deadline_only(loop: FakeLoop, timer: SystemTimer) -> None:
    timer.schedule(15, lambda: None)
    timer.schedule(17, lambda: None)
    timer.schedule(3, lambda: None)
    timer.schedule(9, lambda: None)
    assert [(handle.delay, handle.cancelled) for handle in loop.handles] == [(0.015, True), (0.003, False)]


@pytest.mark.usefixtures("ticker")
def test_a_cancelled_task_costs_one_idle_wake_up_at_most(loop: FakeLoop, timer: SystemTimer) -> None:
    for _ in range(10):
        timer.schedule(450, lambda: None).cancel()
    assert len(loop.handles) == 1
    loop.turn()
    assert loop.armed == []


@pytest.mark.usefixtures("ticker")
def test_waking_up_early_sleeps_again(loop: FakeLoop, timer: SystemTimer, clock: ManualClock) -> None:
    ran_at: list[int] = []
    timer.schedule(5, lambda: ran_at.append(clock.monotonic_ms()))
    (handle,) = loop.armed
    handle.when_ms -= 1  # a loop that rounds its time
    loop.turn()
    assert ran_at == []
    assert [handle.delay for handle in loop.armed] == [0.001]
    loop.turn()
    assert ran_at == [5_005]


@pytest.mark.usefixtures("ticker")
@pytest.mark.parametrize("delay_ms", [LONGEST_SLEEP_MS * 30, (1 << 63) - 1])
def test_no_sleep_is_longer_than_the_longest(loop: FakeLoop, timer: SystemTimer, delay_ms: int) -> None:
    timer.schedule(delay_ms, lambda: None)
    for _ in range(3):
        assert [handle.delay for handle in loop.armed] == [LONGEST_SLEEP_MS / 1000]
        loop.turn()


@pytest.mark.usefixtures("ticker")
def test_much_work_is_done_in_slices(loop: FakeLoop, timer: SystemTimer, clock: ManualClock) -> None:
    ran = 0

    def work() -> None:
        nonlocal ran
        ran += 1
        clock.advance(1)

    for _ in range(1_000):
        timer.schedule(5, work)
    slices = []
    while loop.armed:
        before_ms = max(clock.monotonic_ms(), 5_005)
        loop.turn()
        slices.append(clock.monotonic_ms() - before_ms)
    assert ran == 1_000
    assert slices == [ADVANCE_BUDGET_MS] * (1_000 // ADVANCE_BUDGET_MS)


@pytest.mark.usefixtures("ticker")
def test_a_task_may_add_tasks(loop: FakeLoop, timer: SystemTimer, clock: ManualClock) -> None:
    ran_at: list[int] = []

    def tick() -> None:
        ran_at.append(clock.monotonic_ms())
        timer.schedule(10, tick)

    tick()
    while len(ran_at) < 4:
        loop.turn()
    assert ran_at == [5_000, 5_010, 5_020, 5_030]


@pytest.mark.usefixtures("ticker")
def test_ticker_continues_after_an_unhandled_error(loop: FakeLoop, timer: SystemTimer) -> None:
    ran: list[str] = []
    timer.schedule(5, lambda: 1 // 0)
    timer.schedule(6, lambda: ran.append("later"))
    with pytest.raises(ExceptionGroup):
        loop.turn()
    loop.turn()
    assert ran == ["later"]


def test_stops_and_starts_again(loop: FakeLoop, timer: SystemTimer, ticker: Ticker) -> None:
    ran: list[str] = []
    timer.schedule(5, lambda: ran.append("a"))
    ticker.stop()
    timer.schedule(3, lambda: ran.append("b"))
    assert loop.armed == []
    ticker.start()
    assert [handle.delay for handle in loop.armed] == [0.003]
    while loop.armed:
        loop.turn()
    assert ran == ["b", "a"]


def test_stopping_from_a_task_stops(loop: FakeLoop, timer: SystemTimer, ticker: Ticker) -> None:
    timer.schedule(5, ticker.stop)
    timer.schedule(50, lambda: None)
    loop.turn()
    assert loop.armed == []
    assert timer.size == 1


def test_when_the_clock_was_set_forward_the_loop_wakes_up_earlier(
    loop: FakeLoop, clock: ManualClock, timer: SystemTimer
) -> None:
    ticker = Ticker(loop, clock, timer)
    timer.schedule(60_000, lambda: None)
    ticker.start()
    clock.advance(50_000)
    ticker.clock_moved()
    (handle,) = loop.armed
    assert handle.delay <= 10
    ticker.stop()
    ticker.clock_moved()
    assert loop.armed == []
