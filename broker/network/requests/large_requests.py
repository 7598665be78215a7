"""How many bytes of large requests are in memory as values at a time, and which requests outlive their connections.

The arrays of one megabyte become values of up to 64 MB, and so may those of the response. Requests of different
connections are handled in turns, so all of them would be in memory at once. Those above the limit wait as they have
arrived, undecoded.

Work on a request goes on when its connection is closed, as in Apache Kafka. A client can open the next connection then,
so what waits is not bounded by the connections that are open: `AbandonedRequests` counts the rest.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Protocol

from odradek.timer.sliced_work import Steps, Wait

if TYPE_CHECKING:
    from odradek.broker.network.frames.memory_pool import Memory

LARGE_REQUESTS_BYTES: Final = 1 << 20
"""Of their frames. A larger request is handled when no other one is."""


class HasMemory(Protocol):
    """A `RequestContext`."""

    memory: Memory | Slot | None
    size: int


class Slot:
    """The place of one request, in place of the request's memory. Everybody who works with its values, or with those
    of its response, holds it and releases it; at first that is the handler.
    """

    __slots__ = ("_holders", "_memory", "_requests", "_size")

    def __init__(self, requests: LargeRequests, size: int, memory: Memory | Slot | None) -> None:
        self._requests = requests
        self._size = size
        self._memory = memory
        self._holders = 1

    def hold(self) -> None:
        """Keep the place until one more `release`. It cannot be taken again when it is given away."""
        if self._holders:
            self._holders += 1

    def release(self) -> None:
        """The last one lets the next request begin. Does nothing when the place is given away."""
        if not self._holders:
            return
        self._holders -= 1
        if not self._holders:
            if self._memory is not None:
                self._memory.release()
            self._requests.ended(self._size)


def keeping_place(memory: Memory | Slot | None, work: Steps) -> Steps:
    """`work` for a request, which keeps the request's place, if it has one, until the work is done."""
    return _holding(memory, work) if isinstance(memory, Slot) else work


def _holding(slot: Slot, work: Steps) -> Steps:
    slot.hold()
    try:
        yield from work
    finally:
        slot.release()


class LargeRequests:
    """Up to `LARGE_REQUESTS_BYTES` are decoded, handled and answered; the others wait in the order of their arrival.

    A request that waits for something else, such as records or replicas, does not count any more.
    """

    __slots__ = ("_bytes", "_waiting")

    def __init__(self) -> None:
        self._bytes = 0
        self._waiting: deque[tuple[int, Callable[[], None]]] = deque()

    def admit(self, ctx: HasMemory) -> Steps:
        """Wait for a place, which `ctx.memory` holds from then on."""
        size = ctx.size
        if self._waiting or not self._has_room(size):
            yield Wait(lambda go_on: self._waiting.append((size, go_on)))
        else:
            self._bytes += size
        ctx.memory = Slot(self, size, ctx.memory)

    def ended(self, size: int) -> None:
        """A request is over: the next ones that have room get their places."""
        self._bytes -= size
        while self._waiting and self._has_room(self._waiting[0][0]):
            following, go_on = self._waiting.popleft()
            self._bytes += following
            go_on()

    def _has_room(self, size: int) -> bool:
        return not self._bytes or self._bytes + size <= LARGE_REQUESTS_BYTES


class AbandonedRequests:
    """Closed connections with work left on their requests, by listener. `on_ended` is called when there is one less.

    Apache Kafka reads no further request while `queued.max.requests` wait, of clients that are gone or not.
    """

    __slots__ = ("_by_listener", "_on_ended")

    def __init__(self, on_ended: Callable[[], None]) -> None:
        self._by_listener: dict[str, int] = {}
        self._on_ended = on_ended

    def of(self, listener_name: str) -> int:
        return self._by_listener.get(listener_name, 0)

    def begins(self, listener_name: str) -> None:
        self._by_listener[listener_name] = self.of(listener_name) + 1

    def ended(self, listener_name: str) -> None:
        self._by_listener[listener_name] -= 1
        self._on_ended()


class ConnectionWork:
    """The work on requests of one connection that goes on without the connection: in slices, in worker processes, in
    threads. Waits for records, replicas or members of a group are no work.
    """

    __slots__ = ("_abandoned", "_count", "_is_closed", "_listener_name")

    def __init__(self, abandoned: AbandonedRequests, listener_name: str) -> None:
        self._abandoned = abandoned
        self._count = 0
        self._is_closed = False
        self._listener_name = listener_name

    def begin(self) -> None:
        self._count += 1
        if self._is_closed and self._count == 1:
            self._abandoned.begins(self._listener_name)

    def end(self) -> None:
        self._count -= 1
        if self._is_closed and not self._count:
            self._abandoned.ended(self._listener_name)

    def until_done(self, work: Steps) -> Steps:
        """`work` that counts from now on until it is done."""
        self.begin()
        return self._until_done(work)

    def _until_done(self, work: Steps) -> Steps:
        try:
            yield from work
        finally:
            self.end()

    def connection_closed(self) -> None:
        self._is_closed = True
        if self._count:
            self._abandoned.begins(self._listener_name)
