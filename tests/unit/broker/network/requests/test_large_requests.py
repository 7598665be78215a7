from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from odradek.broker.network.requests.large_requests import (
    LARGE_REQUESTS_BYTES,
    AbandonedRequests,
    ConnectionWork,
    LargeRequests,
    Slot,
)
from odradek.broker.network.requests.request import RequestContext
from odradek.timer.clock import ManualClock
from odradek.timer.sliced_work import SlicedWork, Steps
from odradek.timer.system_timer import SystemTimer


class Memory:
    def __init__(self) -> None:
        self.released = 0

    def release(self) -> None:
        self.released += 1


class Requests:
    """Requests that are admitted by slices of work."""

    def __init__(self) -> None:
        clock = ManualClock()
        self.timer = SystemTimer(clock)
        self._slices = SlicedWork(self.timer, clock, in_turns=True)
        self._large = LargeRequests()

    def arrive(self, size: int = LARGE_REQUESTS_BYTES // 4, memory: object | None = None) -> RequestContext:
        ctx = cast("RequestContext", SimpleNamespace(memory=memory, size=size, is_admitted=False))

        def work() -> Steps:
            yield from self._large.admit(ctx)
            ctx.is_admitted = True  # type: ignore[attr-defined]

        self._slices.submit(work())
        return ctx

    def admitted(self, found: list[RequestContext]) -> list[bool]:
        self.timer.advance()
        return [ctx.is_admitted for ctx in found]  # type: ignore[attr-defined]


def slot(ctx: RequestContext) -> Slot:
    assert isinstance(ctx.memory, Slot)
    return ctx.memory


def test_requests_above_the_limit_wait_in_order() -> None:
    requests = Requests()
    found = [requests.arrive() for _ in range(6)]
    assert requests.admitted(found) == [True] * 4 + [False, False]
    slot(found[1]).release()
    assert requests.admitted(found) == [True] * 5 + [False]
    slot(found[1]).release()
    assert requests.admitted(found)[-1] is False, "its place is given away once"
    slot(found[0]).release()
    assert all(requests.admitted(found))


def test_a_request_above_the_limit_is_alone() -> None:
    requests = Requests()
    found = [requests.arrive(size) for size in (10, LARGE_REQUESTS_BYTES + 1, 10)]
    assert requests.admitted(found) == [True, False, False], "none overtakes another"
    slot(found[0]).release()
    assert requests.admitted(found) == [True, True, False]
    slot(found[1]).release()
    assert all(requests.admitted(found))


def test_small_ones_get_the_room_of_a_large_one() -> None:
    requests = Requests()
    found = [requests.arrive(size) for size in (LARGE_REQUESTS_BYTES, 10, 10)]
    assert requests.admitted(found) == [True, False, False]
    slot(found[0]).release()
    assert all(requests.admitted(found))


def test_places_are_free_again() -> None:
    requests = Requests()
    for _ in range(12):
        ctx = requests.arrive()
        assert requests.admitted([ctx]) == [True]
        slot(ctx).release()


def test_a_place_is_given_away_by_the_last_who_holds_it() -> None:
    requests = Requests()
    found = [requests.arrive(LARGE_REQUESTS_BYTES) for _ in range(3)]
    slot(found[0]).hold()
    slot(found[0]).release()
    assert requests.admitted(found) == [True, False, False]
    slot(found[0]).release()
    assert requests.admitted(found) == [True, True, False]
    slot(found[0]).hold()
    slot(found[0]).release()
    assert requests.admitted(found) == [True, True, False], "it belongs to another one now"


def test_the_memory_of_the_request_goes_with_its_place() -> None:
    memory = Memory()
    ctx = Requests().arrive(memory=memory)
    slot(ctx).hold()
    slot(ctx).release()
    assert memory.released == 0
    slot(ctx).release()
    assert memory.released == 1


def test_work_of_a_closed_connection_is_abandoned_until_it_is_done() -> None:
    ended: list[int] = []
    abandoned: AbandonedRequests = AbandonedRequests(lambda: ended.append(abandoned.of("CLIENTS")))
    first, second = ConnectionWork(abandoned, "CLIENTS"), ConnectionWork(abandoned, "CLIENTS")
    steps = first.until_done(iter_steps())
    first.begin()
    second.begin()
    assert abandoned.of("CLIENTS") == 0, "the connections are open"
    first.connection_closed()
    second.connection_closed()
    assert (abandoned.of("CLIENTS"), abandoned.of("BROKERS")) == (2, 0)
    first.end()
    assert abandoned.of("CLIENTS") == 2, "not all of the first one's work is done"
    assert list(steps) == [None]
    second.end()
    assert ended == [1, 0]


def test_work_that_begins_when_the_connection_is_closed_is_abandoned_too() -> None:
    """An answer that waited for records is made in slices."""
    abandoned = AbandonedRequests(lambda: None)
    work = ConnectionWork(abandoned, "CLIENTS")
    work.begin()
    work.end()
    work.connection_closed()
    assert abandoned.of("CLIENTS") == 0
    work.begin()
    assert abandoned.of("CLIENTS") == 1
    work.end()
    assert abandoned.of("CLIENTS") == 0


def iter_steps() -> Steps:
    yield None
