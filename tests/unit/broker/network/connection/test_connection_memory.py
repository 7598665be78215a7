"""Connections with a memory pool: who is read, and that all memory comes back."""

from __future__ import annotations

import random
import struct

import pytest

from odradek.broker.network.frames.memory_pool import MemoryPool
from odradek.broker.network.sockets.close_reason import CloseReason
from odradek.protocol.api import ApiKey
from tests.support.in_process.connections.network import (
    FETCH,
    HEARTBEAT,
    PRODUCE,
    FakeThrottle,
    Handlers,
    Link,
    answer,
    answered,
    request,
)

POOL = 100_000


@pytest.fixture
def handlers() -> Handlers:
    owner = Handlers()
    owner.memory_pool = MemoryPool(POOL, owner.call_soon)
    return owner


def available(handlers: Handlers) -> int:
    assert handlers.memory_pool is not None
    return handlers.memory_pool.available


def handled(handlers: Handlers) -> None:
    """The handler of the last request has returned."""
    memory = handlers.waiting[-1].memory
    if memory is not None:
        memory.release()


def arriving(key: ApiKey, correlation_id: int, size: int) -> tuple[bytes, bytes]:
    """A request in two reads."""
    whole = request(key, correlation_id, size)
    return whole[:1000], whole[1000:]


def test_a_request_has_memory_from_its_size_until_it_is_handled(handlers: Handlers) -> None:
    link = Link(handlers)
    first, rest = arriving(PRODUCE, 1, 20_000)
    link.receive(first)
    assert available(handlers) == POOL - 20_008
    link.receive(rest)
    assert handlers.applied == [1]
    assert available(handlers) == POOL - 20_008
    handled(handlers)
    assert available(handlers) == POOL, "the answer waits for replicas, and needs no memory"


def test_a_request_that_arrives_whole_needs_no_memory(handlers: Handlers) -> None:
    busy, other = Link(handlers), Link(handlers)
    busy.receive(request(PRODUCE, 1, 200_000)[:1000])
    assert available(handlers) < 0
    other.receive(request(HEARTBEAT, 2))
    assert handlers.applied == [2]


def test_a_connection_is_not_read_while_its_next_request_gets_no_memory(handlers: Handlers) -> None:
    busy, waiting = Link(handlers), Link(handlers)
    first, rest = arriving(PRODUCE, 1, 150_000)
    busy.receive(first)
    next_first, next_rest = arriving(PRODUCE, 2, 5000)
    waiting.receive(next_first)
    assert not waiting.transport.is_reading
    assert busy.transport.is_reading
    busy.receive(rest)
    handled(handlers)
    handlers.run_soon()
    assert waiting.transport.is_reading
    waiting.receive(next_rest)
    assert handlers.applied == [1, 2]
    assert handlers.frames[1] == request(PRODUCE, 2, 5000)[4:]


def test_a_size_alone_can_wait_for_memory_too(handlers: Handlers) -> None:
    busy, waiting = Link(handlers), Link(handlers)
    first, rest = arriving(PRODUCE, 1, 150_000)
    busy.receive(first)
    waiting.receive(request(PRODUCE, 2, 5000)[:4])
    assert not waiting.transport.is_reading
    busy.receive(rest)
    handled(handlers)
    handlers.run_soon()
    assert waiting.transport.is_reading
    waiting.receive(request(PRODUCE, 2, 5000)[4:])
    assert handlers.applied == [1, 2]


def test_an_empty_request_needs_no_memory(handlers: Handlers) -> None:
    busy, other = Link(handlers), Link(handlers)
    busy.receive(request(PRODUCE, 1, 200_000)[:1000])
    sizes: list[int] = []
    handlers.handle = lambda connection, frame, now: sizes.append(len(frame))
    other.receive(struct.pack(">i", 0)[:2])
    other.receive(struct.pack(">i", 0)[2:])
    assert sizes == [0]


@pytest.mark.parametrize("received", [1000, 100_000])
def test_a_connection_that_closes_gives_its_memory_back(handlers: Handlers, received: int) -> None:
    link = Link(handlers)
    link.receive(request(PRODUCE, 1, 150_000)[:received])
    assert available(handlers) < 0
    link.connection.abort(CloseReason.IDLE)
    link.connection.connection_lost(None)
    assert available(handlers) == POOL


def _half_of_a_second_request(link: Link, key: ApiKey = PRODUCE) -> bytes:
    """Receive one request and the first half of another. Returns the other half."""
    link.receive(request(key, 1))
    first, rest = arriving(PRODUCE, 2, 50_000)
    link.receive(first)
    return rest


@pytest.mark.parametrize("key", [FETCH, PRODUCE])
def test_a_connection_takes_no_memory_while_its_last_request_is_in_flight(handlers: Handlers, key: ApiKey) -> None:
    link = Link(handlers)
    rest = _half_of_a_second_request(link, key)
    assert available(handlers) == POOL
    assert not link.transport.is_reading
    answer(handlers.waiting.pop())
    handlers.run_soon()
    assert available(handlers) == POOL - 50_008
    link.receive(rest)
    assert handlers.applied == [1, 2]


def test_a_muted_connection_takes_no_memory(handlers: Handlers) -> None:
    """Else clients that are ahead of their quotas could keep the memory from the others."""
    link, throttle = Link(handlers), FakeThrottle()
    rest = _half_of_a_second_request(link)
    link.connection.throttles.add(throttle)
    answer(handlers.waiting.pop())
    assert available(handlers) == POOL
    link.connection.throttles.remove(throttle)
    assert available(handlers) == POOL - 50_008
    link.receive(rest)
    assert handlers.applied == [1, 2]


def test_a_muted_connection_that_has_ended_takes_no_memory(handlers: Handlers) -> None:
    link, throttle = Link(handlers), FakeThrottle()
    rest = _half_of_a_second_request(link)
    link.connection.data_received(rest)
    link.connection.throttles.add(throttle)
    answer(handlers.waiting.pop())
    assert link.connection.eof_received()
    assert available(handlers) == POOL
    link.connection.throttles.remove(throttle)
    assert handlers.applied == [1, 2]
    handled(handlers)
    assert available(handlers) == POOL


def test_a_request_that_is_handled_keeps_its_memory_though_its_connection_is_gone(handlers: Handlers) -> None:
    link = Link(handlers)
    for part in arriving(PRODUCE, 1, 50_000):
        link.receive(part)
    link.connection.abort(CloseReason.IDLE)
    link.connection.connection_lost(None)
    assert available(handlers) == POOL - 50_008
    handled(handlers)
    assert available(handlers) == POOL


def test_what_came_before_the_end_is_applied_when_there_is_memory(handlers: Handlers) -> None:
    busy, ended = Link(handlers), Link(handlers)
    first, rest = arriving(PRODUCE, 1, 150_000)
    busy.receive(first)
    last_first, last_rest = arriving(PRODUCE, 2, 5000)
    ended.receive(last_first)
    ended.connection.data_received(last_rest)  # a loop may have read it before it was paused
    assert ended.connection.eof_received()
    assert handlers.applied == []
    busy.receive(rest)
    handled(handlers)
    handlers.run_soon()
    assert handlers.applied == [1, 2]
    answer(handlers.waiting.pop())
    assert answered(ended) == [2]
    handlers.run_soon()
    assert ended.transport.is_aborted


def test_many_connections_with_little_memory_are_all_served_and_all_memory_comes_back(handlers: Handlers) -> None:
    chance = random.Random(1)
    streams = {
        Link(handlers): bytearray(
            b"".join(request(PRODUCE, number, chance.randrange(60_000)) for number in range(first, first + 5))
        )
        for first in range(0, 200, 5)
    }
    expected = 200
    for _ in range(100_000):
        ready = [link for link, left in streams.items() if left and link.transport.is_reading]
        if ready:
            link = chance.choice(ready)
            count = chance.choice((1, 3, 4, 700, 9000, 70_000))
            data = bytes(streams[link][:count])
            del streams[link][:count]
            link.receive(data)
        for ctx in [ctx for ctx in handlers.waiting if chance.random() < 0.5]:
            handlers.waiting.remove(ctx)
            if ctx.memory is not None:
                ctx.memory.release()
            answer(ctx)
        handlers.run_soon()
        assert available(handlers) > -60_008
        if not (any(streams.values()) or handlers.waiting or handlers.soon):
            break
    assert sorted(handlers.applied) == list(range(expected))
    assert available(handlers) == POOL
