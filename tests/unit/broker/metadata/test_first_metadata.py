from __future__ import annotations

from collections.abc import Callable

import pytest

from odradek.broker.metadata.first_metadata import FIRST_METADATA_WAIT_MS, FirstMetadata
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer


class Waits:
    def __init__(self, *, has_topics: bool = True) -> None:
        self.clock = ManualClock(1_000_000)
        self.timer = SystemTimer(self.clock)
        self.soon: list[Callable[[], None]] = []
        self.metadata = FirstMetadata(self.timer, self.soon.append, has_topics=has_topics)
        self.done: list[str] = []

    def hold(self, name: str) -> None:
        self.metadata.hold(lambda: self.done.append(name), lambda: self.done.append(f"{name} without brokers"))

    def advance(self, ms: int) -> None:
        self.clock.advance(ms)
        self.timer.advance()

    def run_soon(self) -> None:
        soon, self.soon[:] = list(self.soon), []
        for callback in soon:
            callback()


@pytest.fixture
def waits() -> Waits:
    return Waits()


def test_held_requests_continue_one_in_a_turn_after_the_metadata(waits: Waits) -> None:
    for name in "abc":
        waits.hold(name)
    assert waits.done == []
    waits.metadata.arrived(names_partitions=True)
    assert not waits.metadata.is_awaited
    assert waits.done == ["a"]
    waits.run_soon()
    assert waits.done == ["a", "b"]
    waits.metadata.arrived(names_partitions=True)  # the next UpdateMetadata is one of many
    assert waits.done == ["a", "b"]
    waits.run_soon()
    waits.run_soon()
    assert waits.done == ["a", "b", "c"]
    assert waits.soon == []
    assert waits.timer.size == 0


def test_each_request_waits_no_longer_than_the_limit(waits: Waits) -> None:
    waits.hold("a")
    waits.advance(1)
    waits.hold("b")
    waits.advance(FIRST_METADATA_WAIT_MS - 2)
    assert waits.done == []
    waits.advance(1)
    assert waits.done == ["a without brokers"]
    assert waits.metadata.is_awaited
    waits.metadata.arrived(names_partitions=False)
    waits.advance(1)
    assert waits.done == ["a without brokers", "b"]
    waits.metadata.arrived(names_partitions=True)
    assert len(waits.done) == 2


def test_time_may_be_up_for_those_whose_turn_is_next(waits: Waits) -> None:
    waits.hold("a")
    waits.hold("b")
    waits.metadata.arrived(names_partitions=True)
    waits.advance(FIRST_METADATA_WAIT_MS)
    waits.run_soon()
    assert waits.done == ["a", "b"]


def test_held_requests_are_dropped_when_the_broker_stops(waits: Waits) -> None:
    waits.hold("a")
    waits.metadata.close()
    assert waits.timer.size == 0
    waits.metadata.arrived(names_partitions=True)
    assert waits.done == []


def test_the_brokers_alone_are_enough_when_there_is_no_topic() -> None:
    waits = Waits(has_topics=False)
    waits.hold("a")
    waits.metadata.arrived(names_partitions=False)
    assert waits.done == ["a"]
    assert not waits.metadata.is_awaited
    assert waits.timer.size == 0


def test_where_there_are_topics_the_brokers_alone_are_not_enough(waits: Waits) -> None:
    waits.hold("a")
    waits.metadata.arrived(names_partitions=False)
    assert waits.done == []
    assert waits.metadata.is_awaited
    waits.metadata.arrived(names_partitions=True)
    assert waits.done == ["a"]
    assert not waits.metadata.is_awaited
    assert waits.timer.size == 0


def test_partitions_that_do_not_come_are_waited_for_once(waits: Waits) -> None:
    """Otherwise each request would be held for the whole time when the topics were deleted during the start."""
    waits.metadata.arrived(names_partitions=False)
    waits.advance(FIRST_METADATA_WAIT_MS - 1)
    waits.metadata.arrived(names_partitions=False)
    waits.hold("a")
    assert waits.metadata.is_awaited
    waits.advance(1)
    assert waits.done == ["a"]
    assert not waits.metadata.is_awaited
    waits.run_soon()
    assert waits.timer.size == 0


def test_a_stop_ends_the_wait_for_partitions(waits: Waits) -> None:
    waits.metadata.arrived(names_partitions=False)
    waits.metadata.close()
    assert waits.timer.size == 0
