"""A muted connection: what is not dispatched meanwhile, and what still happens."""

from __future__ import annotations

import pytest

from odradek.broker.network.connection.connection import READ_AHEAD_BYTES
from odradek.broker.network.requests.throttles import Throttles
from odradek.broker.network.sockets.close_reason import CloseReason
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


def lose(link: Link, is_reset: bool) -> None:
    """The client ends the connection, which is closed at once."""
    if is_reset:
        link.transport.has_ended = True
        link.connection.connection_lost(ConnectionResetError("reset"))
    else:
        link.end()
        assert link.transport.is_aborted
        link.connection.connection_lost(None)


def test_the_answer_is_sent_and_the_next_request_waits(link: Link, handlers: Handlers) -> None:
    throttle = FakeThrottle()
    link.receive(request(HEARTBEAT, 1) + request(HEARTBEAT, 2))
    link.connection.throttles.add(throttle)
    answer(handlers.waiting.pop())
    assert answered(link) == [1]
    assert handlers.applied == [1]
    link.receive(request(HEARTBEAT, 3))
    assert handlers.applied == [1]
    link.connection.throttles.remove(throttle)
    assert handlers.applied == [1, 2]
    assert not throttle.is_abandoned


def test_pipelined_produces_wait_too(link: Link, handlers: Handlers) -> None:
    link.receive(request(PRODUCE, 1))
    handlers.waiting[0].may_pipeline = True
    throttle = FakeThrottle()
    link.connection.throttles.add(throttle)
    link.receive(request(PRODUCE, 2))
    assert handlers.applied == [1]
    link.connection.throttles.remove(throttle)
    assert handlers.applied == [1, 2]


def test_the_last_of_several_throttles_unmutes(link: Link, handlers: Handlers) -> None:
    first, second = FakeThrottle(), FakeThrottle()
    link.connection.throttles.add(first)
    link.connection.throttles.add(second)
    link.receive(request(FETCH, 1))
    link.connection.throttles.remove(first)
    assert handlers.applied == []
    link.connection.throttles.remove(second)
    assert handlers.applied == [1]


def test_reading_is_paused_beyond_the_read_ahead(link: Link, handlers: Handlers) -> None:
    throttle = FakeThrottle()
    link.connection.throttles.add(throttle)
    link.receive(request(HEARTBEAT, 1) * (READ_AHEAD_BYTES // len(request(HEARTBEAT, 1)) + 1))
    assert not link.transport.is_reading
    handlers.answer_at_once.add(HEARTBEAT)
    link.connection.throttles.remove(throttle)
    assert link.transport.is_reading


@pytest.mark.parametrize("is_reset", [False, True])
def test_what_came_before_the_end_is_applied_when_the_time_is_over(
    link: Link, handlers: Handlers, is_reset: bool
) -> None:
    throttle = FakeThrottle()
    link.connection.throttles.add(throttle)
    link.receive(request(PRODUCE, 1))
    if is_reset:
        link.transport.has_ended = True
        link.connection.connection_lost(ConnectionResetError("reset"))
    else:
        link.end()
        assert not link.transport.is_aborted
    assert handlers.applied == []
    link.connection.throttles.remove(throttle)
    assert handlers.applied == [1]
    handlers.waiting.pop().reply(None)
    handlers.run_soon()
    assert handlers.closed or link.transport.is_aborted


@pytest.mark.parametrize("is_reset", [False, True])
@pytest.mark.parametrize("received", [b"", request(HEARTBEAT, 1)[:-1]])
def test_the_end_of_a_connection_with_nothing_to_apply_closes_it_at_once(
    link: Link, handlers: Handlers, received: bytes, is_reset: bool
) -> None:
    """Else each client that is far ahead of its quota could leave its sockets behind for as long."""
    throttle = FakeThrottle()
    link.connection.throttles.add(throttle)
    link.receive(received)
    lose(link, is_reset)
    assert throttle.is_abandoned
    assert len(handlers.closed) == 1


@pytest.mark.parametrize("is_reset", [False, True])
def test_a_frame_of_a_wrong_size_before_the_end_closes_a_muted_connection(
    link: Link, handlers: Handlers, is_reset: bool
) -> None:
    link.connection.throttles.add(FakeThrottle())
    link.receive(b"\xff\xff\xff\xff")
    lose(link, is_reset)
    assert handlers.closed[0][0] is CloseReason.INVALID_FRAME
    assert handlers.priorities.lowest([], lambda _: False) is None, "what is closed makes no room"


def test_a_connection_that_is_closed_abandons_its_throttles(link: Link, handlers: Handlers) -> None:
    throttle = FakeThrottle()
    link.connection.throttles.add(throttle)
    link.connection.abort(CloseReason.IDLE)
    link.connection.connection_lost(None)
    assert throttle.is_abandoned
    late = FakeThrottle()
    link.connection.throttles.add(late)
    assert late.is_abandoned
    assert not link.connection.throttles.active


def test_unmuted_is_reported_once() -> None:
    reports: list[str] = []
    throttles = Throttles(lambda: reports.append("unmuted"))
    throttle = FakeThrottle()
    throttles.add(throttle)
    throttles.remove(throttle)
    throttles.close()
    assert reports == ["unmuted"]
