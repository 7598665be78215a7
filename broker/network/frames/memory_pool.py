"""The memory of requests that are on their way, over all connections: `queued.max.request.bytes`.

The size of a request is taken from the pool when it is known, and given back when the request has been handled, also if
its answer waits for something else. A request that arrives whole in one read takes nothing: it is handled in that turn
of the loop. While the pool is empty, a connection whose next request needs memory is not read; these connections get
memory in the order in which they asked.

A request gets its whole size as soon as any memory is left, so that the pool can be exceeded by one request. So each
request that has memory can be received and handled without more of it: connections cannot wait for each other.

Kafka: SimpleMemoryPool, MemoryPool.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Memory:
    """The memory of one request."""

    __slots__ = ("_pool", "_size")

    def __init__(self, pool: MemoryPool, size: int) -> None:
        self._pool = pool
        self._size = size

    def release(self) -> None:
        """Give it back. A second call does nothing."""
        size, self._size = self._size, 0
        self._pool.give_back(size)


class ConnectionMemory:
    """The memory of one connection. `available` is called when the connection may call `take` again.

    `may_take`: no other request of the connection is in flight. As in Apache Kafka, a request that would have to wait
    for the answers or the throttle time of others takes no memory.
    """

    __slots__ = ("_may_take", "_pool", "available")

    def __init__(self, pool: MemoryPool, may_take: Callable[[], bool], available: Callable[[], None]) -> None:
        self._pool = pool
        self._may_take = may_take
        self.available = available

    def take(self, size: int) -> Memory | None:
        """Memory for a request of `size` bytes, or None.

        `available` is called when there is some. The connection asks again when its last request is answered.
        """
        return self._pool.try_allocate(self, size) if self._may_take() else None

    def close(self) -> None:
        """Ask for nothing more."""
        self._pool.forget(self)


class MemoryPool:
    """`size` bytes for all connections. `call_soon` runs a function in the next turn of the loop."""

    __slots__ = ("_call_soon", "_is_scheduled", "_next", "_waiting", "available", "size")

    def __init__(self, size: int, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._waiting: dict[ConnectionMemory, None] = {}
        """In the order in which they asked."""
        self._next: ConnectionMemory | None = None
        """The one that is called: it gets memory before those that wait."""
        self._is_scheduled = False
        self.size = size
        self.available = size
        """Bytes; below 0 after the last request was larger than what was left."""

    def try_allocate(self, taker: ConnectionMemory, size: int) -> Memory | None:
        """Memory of `size` bytes, or None; then `taker.available` is called when it is the next to get some."""
        if self.available <= 0 or (self._waiting and self._next is not taker):
            self._waiting[taker] = None
            self._call_next_soon()
            return None
        self._next = None
        self.available -= size
        return Memory(self, size)

    def forget(self, taker: ConnectionMemory) -> None:
        self._waiting.pop(taker, None)

    def give_back(self, size: int) -> None:
        self.available += size
        self._call_next_soon()

    def _call_next_soon(self) -> None:
        if self._waiting and self.available > 0 and not self._is_scheduled:
            self._is_scheduled = True
            self._call_soon(self._call_next)

    def _call_next(self) -> None:
        """Call one of those that wait: its connection may handle requests for some milliseconds then."""
        self._is_scheduled = False
        if self._waiting and self.available > 0:
            taker = self._next = next(iter(self._waiting))
            del self._waiting[taker]
            taker.available()
            self._next = None
            self._call_next_soon()
