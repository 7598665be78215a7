"""Walks over many things: some now, some later."""

from __future__ import annotations

import pytest

from odradek.timer.clock import ManualClock
from odradek.timer.sliced_work import SLICE_MS
from odradek.timer.system_timer import SystemTimer
from odradek.timer.walks import PAUSE_MS, Walks


class World:
    def __init__(self) -> None:
        self.clock = ManualClock()
        self.errors: list[Exception] = []
        self.timer = SystemTimer(self.clock, on_error=lambda task, error: self.errors.append(error))
        self.walks = Walks(self.timer, at_once=2)
        self.seen: list[object] = []

    def next_callback(self) -> None:
        self.clock.advance(PAUSE_MS)
        self.timer.advance()


def test_a_few_at_a_time_and_then_done() -> None:
    world = World()
    things = list(range(5))
    world.walks.walk(things, world.seen.append, lambda: world.seen.append("done"))
    counts = [len(world.seen)]
    for _ in range(3):
        world.next_callback()
        counts.append(len(world.seen))
    assert counts == [2, 4, 6, 6]
    assert set(world.seen[:5]) == set(things)
    assert world.seen[5] == "done"
    assert things == list(range(5)), "the list is the caller's"


def test_walk_over_nothing_is_done_at_once() -> None:
    world = World()
    world.walks.walk((), world.seen.append, lambda: world.seen.append("done"))
    assert world.seen == ["done"]
    assert world.timer.size == 0


def test_visits_that_are_slow_are_not_made_in_one_callback() -> None:
    world = World()
    world.walks.at_once = 50

    def visit(thing: int) -> None:
        world.seen.append(thing)
        world.clock.advance(SLICE_MS - 1)

    world.walks.walk(range(5), visit, lambda: world.seen.append("done"))
    counts = [len(world.seen)]
    for _ in range(2):
        world.next_callback()
        counts.append(len(world.seen))
    assert counts == [2, 4, 6]


def test_nothing_is_visited_after_the_end() -> None:
    world = World()
    world.walks.walk(range(5), world.seen.append, lambda: world.seen.append("done"))
    world.walks.stop()
    world.next_callback()
    assert len(world.seen) == 2


def test_all_things_are_visited_although_each_visit_raises() -> None:
    """Also those that would have been visited by the same callback."""
    world = World()

    def visit(thing: int) -> None:
        world.seen.append(thing)
        raise ValueError(thing)

    with pytest.raises(ValueError, match="4"):
        world.walks.walk(range(5), visit, lambda: world.seen.append("done"))
    for _ in range(4):
        world.next_callback()
    assert world.seen == [4, 3, 2, 1, 0, "done"]
    assert [str(error) for error in world.errors] == ["3", "2", "1", "0"]
