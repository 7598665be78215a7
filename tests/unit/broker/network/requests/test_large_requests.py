from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from odradek.broker.network.requests.large_requests import LARGE_REQUESTS_MAX, LargeRequests
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

    def arrive(self, memory: object | None = None) -> RequestContext:
        ctx = cast("RequestContext", SimpleNamespace(memory=memory, is_admitted=False))

        def work() -> Steps:
            yield from self._large.admit(ctx)
            ctx.is_admitted = True  # type: ignore[attr-defined]

        self._slices.submit(work())
        return ctx

    def admitted(self, found: list[RequestContext]) -> list[bool]:
        self.timer.advance()
        return [ctx.is_admitted for ctx in found]  # type: ignore[attr-defined]


def test_requests_above_the_limit_wait_in_order() -> None:
    requests = Requests()
    found = [requests.arrive() for _ in range(LARGE_REQUESTS_MAX + 2)]
    assert requests.admitted(found) == [True] * LARGE_REQUESTS_MAX + [False, False]
    assert found[1].memory is not None
    found[1].memory.release()
    assert requests.admitted(found) == [True] * LARGE_REQUESTS_MAX + [True, False]
    found[1].memory.release()
    assert requests.admitted(found)[-1] is False, "its place is given away once"
    assert found[0].memory is not None
    found[0].memory.release()
    assert all(requests.admitted(found))


def test_places_are_free_again() -> None:
    requests = Requests()
    for _ in range(3 * LARGE_REQUESTS_MAX):
        ctx = requests.arrive()
        assert requests.admitted([ctx]) == [True]
        assert ctx.memory is not None
        ctx.memory.release()


def test_the_memory_of_the_request_goes_with_its_place() -> None:
    memory = Memory()
    ctx = Requests().arrive(memory)
    assert memory.released == 0
    assert ctx.memory is not None
    ctx.memory.release()
    assert memory.released == 1
