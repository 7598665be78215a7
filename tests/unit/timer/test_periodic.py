"""Work that recurs."""

from __future__ import annotations

import pytest

from odradek.timer.clock import ManualClock
from odradek.timer.periodic import PeriodicTask
from odradek.timer.system_timer import SystemTimer
from odradek.timer.task import TimerTask


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.errors: list[tuple[TimerTask, Exception]] = []
        self.timer = SystemTimer(self.clock, on_error=lambda task, error: self.errors.append((task, error)))
        self.rounds: list[int] = []
        self.task = PeriodicTask(self.timer, "retention", 100, self.work)
        self.error: Exception | None = None
        self.is_last = False

    def work(self) -> None:
        self.rounds.append(self.clock.monotonic_ms())
        if self.is_last:
            self.task.cancel()
        if self.error is not None:
            raise self.error

    def advance(self, *steps_ms: int) -> list[int]:
        for ms in steps_ms:
            self.clock.advance(ms)
            self.timer.advance()
        return self.rounds


@pytest.fixture
def world() -> World:
    return World()


def test_a_round_each_interval(world: World) -> None:
    world.task.start()
    assert world.advance(99) == []
    assert world.advance(1, 99, 1, 100) == [100, 200, 300]


def test_the_first_round_may_have_a_time_of_its_own(world: World) -> None:
    world.task.start(initial_delay_ms=10)
    assert world.advance(10, 99, 1) == [10, 110]


def test_an_exception_ends_one_round_and_is_reported(world: World) -> None:
    world.task.start()
    world.error = ValueError("a bug")
    world.advance(100, 100)
    world.error = None
    assert world.advance(100) == [100, 200, 300]
    assert world.errors == [(world.task, world.errors[0][1])] * 2
    assert repr(world.task) == "<retention, every 100 ms>"


def test_nothing_recurs_after_the_end(world: World) -> None:
    world.task.start()
    world.advance(100)
    world.task.cancel()
    assert world.advance(1_000) == [100]
    assert world.timer.size == 0


def test_the_work_may_end_it(world: World) -> None:
    world.task.start()
    world.is_last = True
    assert world.advance(100, 100) == [100]


def test_another_interval_holds_from_the_round_after_the_next_on(world: World) -> None:
    world.task.start()
    world.task.interval_ms = 50
    assert world.advance(100, 50) == [100, 150]


@pytest.mark.parametrize(("interval_ms", "rounds"), [(0, [100]), (1, [100, 101, 102])])
def test_an_interval_of_zero_makes_one_round(world: World, interval_ms: int, rounds: list[int]) -> None:
    world.task.interval_ms = interval_ms
    world.task.start(initial_delay_ms=100)
    assert world.advance(100, 1, 1) == rounds
