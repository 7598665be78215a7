"""How many large requests are in memory as values at a time.

The arrays of one megabyte become values of up to 46 MB. Requests of different connections are handled in turns, so all
of them would be in memory at once. Those above the limit wait as they have arrived, undecoded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from odradek.timer.sliced_work import Steps, Wait

if TYPE_CHECKING:
    from odradek.broker.network.frames.memory_pool import Memory

LARGE_REQUESTS_MAX: Final = 4


class HasMemory(Protocol):
    """A `RequestContext`."""

    memory: Memory | Slot | None


class Slot:
    """The place of one request. It takes the place of the request's memory, and is released when that would be."""

    __slots__ = ("_memory", "_requests")

    def __init__(self, requests: LargeRequests, memory: Memory | Slot | None) -> None:
        self._requests: LargeRequests | None = requests
        self._memory = memory

    def release(self) -> None:
        """Let the next one begin. A second call does nothing."""
        if self._memory is not None:
            self._memory.release()
        requests, self._requests = self._requests, None
        if requests is not None:
            requests.ended()


class LargeRequests:
    """At most `LARGE_REQUESTS_MAX` requests are decoded and handled; the others wait in the order of their arrival.

    A request that waits for something else, such as records or the controller, does not count any more.
    """

    __slots__ = ("_free", "_waiting")

    def __init__(self) -> None:
        self._free = LARGE_REQUESTS_MAX
        self._waiting: deque[Callable[[], None]] = deque()

    def admit(self, ctx: HasMemory) -> Steps:
        """Wait for a place, which `ctx.memory` holds from then on."""
        if self._free:
            self._free -= 1
        else:
            yield Wait(self._waiting.append)
        ctx.memory = Slot(self, ctx.memory)

    def ended(self) -> None:
        """The handler of a request is done: the next one gets its place."""
        if self._waiting:
            self._waiting.popleft()()
        else:
            self._free += 1
