"""Generators that are run to their end without holding the thread: in one go, in slices, with waits between."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from odradek.timer.clock import ManualClock
from odradek.timer.sliced_work import IMMEDIATE_STEPS, SLICE_MS, SlicedWork, Steps, Wait
from odradek.timer.system_timer import SystemTimer


class World:
    """Work of which every step takes `step_ms`; `done` are the names of the steps in their order."""

    def __init__(self, *, in_turns: bool = False) -> None:
        self.clock = ManualClock()
        self.timer = SystemTimer(self.clock)
        self.work = SlicedWork(self.timer, self.clock, in_turns=in_turns)
        self.step_ms = 0
        self.done: list[str] = []
        self.ends: list[Callable[[], None]] = []
        self.abandoned: list[str] = []

    def steps(self, name: str, count: int) -> Steps:
        try:
            for _ in range(count):
                self.done.append(name)
                self.clock.advance(self.step_ms)
                yield None
        except GeneratorExit:
            self.abandoned.append(name)

    def waiting(self, name: str, *, at_once: bool = False) -> Steps:
        """A step, a wait, a step."""
        self.done.append(name)
        yield Wait(lambda end: end() if at_once else self.ends.append(end))
        self.done.append(name)

    def run(self) -> int:
        """Run all slices; the longest one in ms."""
        longest_ms = 0
        while self.timer.size:
            before_ms = self.clock.monotonic_ms()
            self.timer.advance()
            longest_ms = max(longest_ms, self.clock.monotonic_ms() - before_ms)
        return longest_ms


def test_little_work_is_done_on_the_spot() -> None:
    world = World()
    world.work.submit(world.steps("a", IMMEDIATE_STEPS - 1))
    assert len(world.done) == IMMEDIATE_STEPS - 1
    assert world.timer.size == 0


def test_more_is_put_off_after_its_first_steps() -> None:
    world = World()
    world.work.submit(world.steps("a", IMMEDIATE_STEPS + 1))
    assert len(world.done) == IMMEDIATE_STEPS
    world.run()
    assert len(world.done) == IMMEDIATE_STEPS + 1


def test_neither_the_first_steps_nor_a_slice_exceed_their_time() -> None:
    world = World()
    world.step_ms = 1
    world.work.submit(world.steps("a", 1_000))
    assert world.clock.monotonic_ms() <= SLICE_MS
    assert world.run() <= SLICE_MS
    assert len(world.done) == 1_000


def test_a_slice_has_one_step_if_steps_are_slow() -> None:
    world = World()
    world.step_ms = 2 * SLICE_MS
    world.work.submit(world.steps("a", 10))
    assert world.done == ["a"]
    assert world.run() == world.step_ms
    assert len(world.done) == 10


def test_short_works_in_a_row_do_not_exceed_a_slice_either() -> None:
    world = World()
    world.work.submit(world.steps("first", IMMEDIATE_STEPS + 1))
    world.step_ms = 1
    for number in range(100):
        world.work.submit(world.steps(str(number), 1))
    assert world.run() <= SLICE_MS
    assert len(world.done) == IMMEDIATE_STEPS + 1 + 100


def test_one_after_the_other_in_the_order_they_came() -> None:
    world = World()
    world.work.submit(world.steps("a", IMMEDIATE_STEPS * 3))
    world.work.submit(world.steps("b", 3))
    world.step_ms = 1
    world.run()
    assert world.done == ["a"] * (IMMEDIATE_STEPS * 3) + ["b"] * 3


def test_in_turns_little_work_does_not_wait_for_much() -> None:
    world = World(in_turns=True)
    world.step_ms = 1
    world.work.submit(world.steps("a", 100))
    world.work.submit(world.steps("b", 3))
    assert world.done[-3:] == ["b"] * 3
    world.work.submit(world.steps("c", 50))
    world.run()
    assert world.done.index("c") < 50
    assert world.done[-1] == "a", "each has had its slices in turn"


@pytest.mark.parametrize("in_turns", [False, True])
def test_waiting_work_goes_on_after_its_wait(in_turns: bool) -> None:
    world = World(in_turns=in_turns)
    world.work.submit(world.waiting("a"))
    world.run()
    assert world.done == ["a"]
    world.ends.pop()()
    assert world.done == ["a"], "not inside the callback of another"
    world.run()
    assert world.done == ["a", "a"]


@pytest.mark.parametrize("in_turns", [False, True])
def test_a_wait_may_be_over_at_once(in_turns: bool) -> None:
    world = World(in_turns=in_turns)
    world.work.submit(world.waiting("a", at_once=True))
    assert world.done == ["a", "a"]


def test_while_one_waits_none_behind_it_begins() -> None:
    world = World()
    world.work.submit(world.waiting("a"))
    world.work.submit(world.steps("b", 1))
    world.run()
    assert world.done == ["a"]
    world.ends.pop()()
    world.run()
    assert world.done == ["a", "a", "b"]


def test_in_turns_waiting_work_does_not_block_the_others() -> None:
    world = World(in_turns=True)
    world.work.submit(world.waiting("a"))
    world.work.submit(world.steps("b", IMMEDIATE_STEPS * 2))
    world.run()
    assert world.done == ["a"] + ["b"] * (IMMEDIATE_STEPS * 2)


def _fails() -> Steps:
    yield from (None for _ in range(IMMEDIATE_STEPS))
    raise ZeroDivisionError


def test_a_bug_is_raised_and_the_others_go_on() -> None:
    world = World()
    world.work.submit(_fails())
    world.work.submit(world.steps("b", 1))
    with pytest.raises(ExceptionGroup):
        world.timer.advance()
    world.run()
    assert world.done == ["b"]


def test_close_gives_up_unfinished_work() -> None:
    world = World()
    world.work.submit(world.steps("a", IMMEDIATE_STEPS * 2))
    world.work.close()
    world.run()
    assert world.abandoned == ["a"]
    assert len(world.done) == IMMEDIATE_STEPS
