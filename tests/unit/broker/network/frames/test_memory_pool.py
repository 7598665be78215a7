from __future__ import annotations

from collections import deque
from collections.abc import Callable

from odradek.broker.network.frames.memory_pool import ConnectionMemory, Memory, MemoryPool


class Pool:
    """A pool, and the turns of a loop."""

    def __init__(self, size: int) -> None:
        self.soon: deque[Callable[[], None]] = deque()
        self.pool = MemoryPool(size, self.soon.append)
        self.served: list[str] = []

    def taker(self, name: str, size: int = 10) -> ConnectionMemory:
        """A connection that takes memory whenever it is called, and keeps it."""

        def available() -> None:
            if memory.take(size) is not None:
                self.served.append(name)

        memory = ConnectionMemory(self.pool, lambda: True, available)
        return memory

    def turn(self) -> None:
        if self.soon:
            self.soon.popleft()()


def taken(memory: Memory | None) -> Memory:
    assert memory is not None
    return memory


def test_the_last_request_may_be_larger_than_what_is_left() -> None:
    pool = Pool(100)
    first, second = taken(pool.taker("a").take(99)), taken(pool.taker("b").take(50))
    assert pool.pool.available == -49
    assert pool.taker("c").take(1) is None
    second.release()
    first.release()
    assert pool.pool.available == 100


def test_memory_is_given_back_once() -> None:
    pool = Pool(100)
    memory = taken(pool.taker("a").take(60))
    memory.release()
    memory.release()
    assert pool.pool.available == 100


def test_those_that_wait_are_called_in_their_order_one_a_turn() -> None:
    pool = Pool(10)
    held = taken(pool.taker("a").take(10))
    for name in ("b", "c", "d"):
        assert pool.taker(name, size=4).take(4) is None
    assert not pool.soon, "there is no memory"
    held.release()
    pool.turn()
    assert pool.served == ["b"]
    pool.turn()
    assert pool.served == ["b", "c"]
    pool.turn()
    assert pool.served == ["b", "c", "d"]
    assert pool.pool.available == -2
    assert not pool.soon


def test_a_busy_connection_waits_behind_those_that_wait() -> None:
    pool = Pool(10)
    busy = pool.taker("busy")
    held = taken(busy.take(10))
    assert pool.taker("waiting").take(10) is None
    held.release()
    assert busy.take(10) is None
    pool.turn()
    assert pool.served == ["waiting"]


def test_one_that_is_called_gets_memory_once_before_the_others() -> None:
    pool = Pool(10)
    held = taken(pool.taker("a").take(10))
    kept: list[Memory | None] = []
    greedy = ConnectionMemory(pool.pool, lambda: True, lambda: kept.extend(greedy.take(4) for _ in range(2)))
    assert greedy.take(4) is None
    assert pool.taker("next").take(10) is None
    held.release()
    pool.turn()
    assert [memory is not None for memory in kept] == [True, False]
    pool.turn()
    assert pool.served == ["next"]


def test_one_that_is_called_and_needs_nothing_lets_the_next_have_it() -> None:
    pool = Pool(10)
    held = taken(pool.taker("a").take(10))
    idle = ConnectionMemory(pool.pool, lambda: True, lambda: None)
    assert idle.take(10) is None
    assert pool.taker("next").take(10) is None
    held.release()
    pool.turn()
    pool.turn()
    assert pool.served == ["next"]


def test_one_that_is_gone_is_forgotten() -> None:
    pool = Pool(10)
    held = taken(pool.taker("a").take(10))
    for _ in range(1000):
        gone = pool.taker("gone")
        assert gone.take(10) is None
        gone.close()
    assert pool.taker("next").take(10) is None
    assert len(pool.pool._waiting) == 1
    held.release()
    pool.turn()
    assert pool.served == ["next"]
