from __future__ import annotations

import errno
import gc

import pytest

from odradek.broker.network.connection.connection import MAX_TURN_MS, READ_AHEAD_BYTES, Connection
from odradek.broker.network.requests.request import RequestContext, RequestTimes
from odradek.broker.network.sockets.close_reason import CloseReason
from odradek.controller.model.broker_info import SecurityProtocol
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from tests.support.garbage import no_collection
from tests.support.in_process.connections.network import (
    FETCH,
    HEARTBEAT,
    PRODUCE,
    Handlers,
    Link,
    MemoryRegion,
    Sent,
    answer,
    answered,
    request,
)

RESET = ConnectionResetError("reset")


def answers_nothing(handlers: Handlers) -> None:
    """Every request has no response, such as Produce with acks=0, and takes half a turn."""

    def handle(connection: Connection, frame: memoryview, now: int) -> None:
        handlers._handle(connection, frame, now)
        handlers.waiting.pop().reply(None)
        handlers.clock.advance(MAX_TURN_MS // 2)

    handlers.handle = handle


def test_silent_end_closes_at_once(link: Link, handlers: Handlers) -> None:
    link.end()
    assert link.transport.is_aborted
    link.connection.connection_lost(None)
    assert handlers.closed == [(CloseReason.CLIENT_CLOSED, "")]


def test_answer_is_sent_to_a_client_that_has_only_stopped_writing(link: Link, handlers: Handlers) -> None:
    link.receive(request(FETCH, 1))
    link.end()
    assert not link.transport.is_aborted
    answer(handlers.waiting.pop())
    assert answered(link) == [1]
    handlers.run_soon()
    assert link.transport.is_aborted
    link.connection.connection_lost(None)
    assert handlers.closed == [(CloseReason.CLIENT_CLOSED, "")]


def test_requests_behind_one_that_waits_are_applied_after_the_end(link: Link, handlers: Handlers) -> None:
    link.receive(request(FETCH, 1) + request(PRODUCE, 2) + request(PRODUCE, 3) + request(HEARTBEAT, 4))
    link.end()
    assert handlers.applied == [1]
    answer(handlers.waiting.pop())
    handlers.run_soon()
    assert handlers.applied == [1, 2, 3]
    for ctx in list(handlers.waiting):
        answer(ctx)
    handlers.run_soon()
    assert handlers.applied == [1, 2, 3, 4]
    assert not link.transport.is_aborted
    answer(handlers.waiting.pop())
    assert answered(link) == [1, 2, 3, 4]
    handlers.run_soon()
    assert link.transport.is_aborted


def test_requests_cut_off_by_the_turn_limit_are_applied_after_the_end(link: Link, handlers: Handlers) -> None:
    answers_nothing(handlers)
    link.receive(b"".join(request(PRODUCE, number) for number in range(9)))
    assert handlers.applied == [0, 1]
    link.end()
    while not link.transport.is_aborted:
        before = len(handlers.applied)
        handlers.run_soon()
        assert len(handlers.applied) > before
    assert handlers.applied == list(range(9))


def test_client_that_reads_slowly_gets_all_its_answers_after_the_end(link: Link, handlers: Handlers) -> None:
    region = MemoryRegion(b"r" * 100_000)
    link.receive(request(FETCH, 1) + request(HEARTBEAT, 2))
    link.end()
    link.direct.room = 50_000
    handlers.waiting.pop().reply(
        FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(records=region)])])
    )
    assert not link.transport.is_aborted
    handlers.answer_at_once = {HEARTBEAT}
    link.direct.make_room(10**6)
    assert handlers.applied == [1, 2]
    assert bytes(link.wire.data).count(b"r") == 100_000
    assert link.transport.is_aborted
    region.close()


@pytest.mark.parametrize("size", [100, 500_000])
def test_frame_that_was_not_received_as_a_whole_goes_with_the_connection(
    link: Link, handlers: Handlers, size: int
) -> None:
    handlers.answer_at_once = {HEARTBEAT}
    link.receive(request(HEARTBEAT, 1) + request(PRODUCE, 2, size)[:50])
    link.end()
    assert handlers.applied == [1]
    assert answered(link) == [1]
    assert link.transport.is_aborted


def test_bad_frame_before_the_end_is_the_reason_of_the_close(link: Link, handlers: Handlers) -> None:
    link.receive(request(FETCH, 1) + b"\xff\xff\xff\xff")
    assert link.connection.eof_received()  # a loop may have read it before it was paused
    assert not link.transport.is_aborted
    answer(handlers.waiting.pop())
    handlers.run_soon()
    assert link.transport.is_aborted
    link.connection.connection_lost(None)
    assert handlers.closed == [(CloseReason.INVALID_FRAME, "Invalid receive (size = -1)")]


def test_reading_is_left_alone_after_the_end(link: Link, handlers: Handlers) -> None:
    """Event loops differ in what a pause or resume does after the end; the fake transport accepts neither."""
    link.receive(request(FETCH, 1) + request(PRODUCE, 2, READ_AHEAD_BYTES - 100))
    assert link.transport.is_reading
    link.end()
    answer(handlers.waiting.pop())
    handlers.run_soon()
    assert handlers.applied == [1, 2]


def test_half_closed_client_that_waits_is_closed_when_it_is_idle(link: Link, handlers: Handlers) -> None:
    link.receive(request(FETCH, 1) + request(HEARTBEAT, 2))
    link.end()
    handlers.clock.advance(1000)
    assert link.connection.close_if_idle(1000) == 0
    assert link.transport.is_aborted
    link.connection.connection_lost(None)
    assert handlers.closed == [(CloseReason.IDLE, "")]


def test_requests_before_a_reset_are_applied_if_they_have_no_response(link: Link, handlers: Handlers) -> None:
    answers_nothing(handlers)
    link.receive(b"".join(request(PRODUCE, number) for number in range(5)))
    assert handlers.applied == [0, 1]
    link.connection.connection_lost(RESET)
    assert handlers.closed == []
    while handlers.soon:
        handlers.run_soon()
    assert handlers.applied == list(range(5))
    assert handlers.closed == [(CloseReason.CONNECTION_FAILED, "reset")]


def test_nothing_is_applied_after_a_reset_behind_a_request_that_has_an_answer(link: Link, handlers: Handlers) -> None:
    """Apache Kafka fails to write the answer, and discards what comes behind."""
    answers_nothing(handlers)
    link.receive(b"".join(request(PRODUCE, number) for number in range(4)))
    handlers.handle = handlers._handle
    handlers.answer_at_once = {PRODUCE}
    link.connection.connection_lost(RESET)
    handlers.run_soon()
    assert handlers.applied == [0, 1, 2]
    assert answered(link) == []
    assert handlers.closed == [(CloseReason.CONNECTION_FAILED, "reset")]


def test_nothing_is_kept_after_a_reset_behind_a_request_that_holds_the_connection(
    link: Link, handlers: Handlers
) -> None:
    link.receive(request(FETCH, 1) + request(PRODUCE, 2))
    link.connection.connection_lost(RESET)
    assert handlers.closed == [(CloseReason.CONNECTION_FAILED, "reset")]
    answer(handlers.waiting.pop())
    assert handlers.applied == [1]


def test_nothing_is_applied_after_a_reset_behind_answers_that_were_not_sent(link: Link, handlers: Handlers) -> None:
    handlers.answer_at_once = {HEARTBEAT}
    link.transport.take(0)
    link.receive(request(HEARTBEAT, 1))
    link.receive(request(HEARTBEAT, 2))
    link.connection.connection_lost(RESET)
    assert handlers.applied == [1]
    assert handlers.closed == [(CloseReason.CONNECTION_FAILED, "reset")]


def test_server_that_stops_closes_a_connection_that_was_reset(link: Link, handlers: Handlers) -> None:
    answers_nothing(handlers)
    link.receive(b"".join(request(PRODUCE, number) for number in range(5)))
    link.connection.connection_lost(RESET)
    link.connection.abort(CloseReason.SHUTDOWN)
    assert handlers.closed == [(CloseReason.SHUTDOWN, "")]
    handlers.run_soon()
    assert handlers.applied == [0, 1, 2, 3]


class Unobservant:
    """An observer that looks at nothing."""

    def request_decoded(self, ctx: RequestContext, request: Request) -> None: ...

    def response_made(self, ctx: RequestContext, response: Response | None) -> None: ...

    def request_completed(self, ctx: RequestContext) -> None: ...


@pytest.mark.parametrize("is_unsent", [False, True])
def test_a_closed_connection_is_freed_without_a_collection(is_unsent: bool) -> None:
    """A broker collects old garbage rarely; each connection that it closed would stay until then."""
    with no_collection():
        before = connections_in_memory()
        handlers = Handlers()
        link = Link(handlers)
        link.receive(request(HEARTBEAT, 1))
        if is_unsent:  # the connection still waits for the end of an observed request
            link.transport.take(0)
            handlers.waiting[0].times = RequestTimes(Unobservant(), handlers.clock.monotonic_ns, 0)
            answer(handlers.waiting[0])
        handlers.waiting.clear()
        link.receive(request(PRODUCE, 2, 100_000)[:70_000])  # a large frame, received in another way, without its end
        link.connection.connection_lost(None)
        link.transport.protocol = None  # as event loops do
        del link.connection
        assert connections_in_memory() == before


def connections_in_memory() -> int:
    return sum(type(found) is Connection for found in gc.get_objects())


def test_answers_that_are_ready_leave_before_a_request_closes_the_connection(link: Link, handlers: Handlers) -> None:
    """Apache Kafka reads a request when the answer to the one before is sent."""
    handlers.answer_at_once = {HEARTBEAT}
    handle = handlers.handle

    def refuse_fetches(connection: Connection, frame: memoryview, now_ms: int) -> None:
        handle(connection, frame, now_ms)
        if handlers.waiting:
            handlers.waiting.pop().close_connection()

    handlers.handle = refuse_fetches
    link.receive(request(HEARTBEAT, 1) + request(FETCH, 2) + request(HEARTBEAT, 3))
    assert answered(link) == [1]
    assert handlers.applied == [1, 2]
    assert link.transport.is_aborted
    link.connection.connection_lost(None)
    assert handlers.closed == [(CloseReason.REQUEST_REFUSED, "request refused")]


def test_a_request_that_closes_the_connection_waits_for_earlier_answers(link: Link, handlers: Handlers) -> None:
    link.receive(b"".join(request(PRODUCE, number) for number in range(1, 5)))
    first, second, third, fourth = handlers.waiting
    third.close_connection()
    answer(fourth)
    answer(second)
    link.connection.proceed()
    handlers.run_soon()
    assert answered(link) == []
    assert not link.transport.is_aborted
    answer(first)
    handlers.run_soon()
    assert answered(link) == [1, 2]
    assert link.transport.is_aborted
    link.connection.connection_lost(None)
    assert handlers.closed == [(CloseReason.REQUEST_REFUSED, "request refused")]


def test_the_first_request_that_closes_the_connection_counts(link: Link, handlers: Handlers) -> None:
    link.receive(request(PRODUCE, 1) + request(PRODUCE, 2) + request(PRODUCE, 3) + b"\xff\xff\xff\xff")
    _, second, third = handlers.waiting
    third.close_connection()
    second.close_connection()
    assert not link.transport.is_aborted
    answer(handlers.waiting[0])
    handlers.run_soon()
    assert answered(link) == [1]
    assert link.transport.is_aborted
    link.connection.connection_lost(None)
    assert handlers.closed == [(CloseReason.REQUEST_REFUSED, "request refused")]


def test_an_invalid_frame_behind_a_request_that_waits_closes_after_its_answer(link: Link, handlers: Handlers) -> None:
    link.receive(request(PRODUCE, 1) + b"\xff\xff\xff\xff")
    assert not link.transport.is_reading
    assert not link.transport.is_aborted
    answer(handlers.waiting.pop())
    handlers.run_soon()
    assert answered(link) == [1]
    assert link.transport.is_aborted
    link.connection.connection_lost(None)
    assert handlers.closed == [(CloseReason.INVALID_FRAME, "Invalid receive (size = -1)")]


def test_a_client_that_reads_slowly_gets_its_answers_before_the_close(link: Link, handlers: Handlers) -> None:
    handlers.answer_at_once = {HEARTBEAT}
    link.transport.take(3)
    link.receive(request(HEARTBEAT, 1) + b"\xff\xff\xff\xff")
    assert not link.transport.is_aborted
    link.transport.take(None)
    assert answered(link) == [1]
    assert link.transport.is_aborted


def test_a_client_that_is_gone_before_its_last_answers_ends_the_connection(link: Link, handlers: Handlers) -> None:
    link.receive(request(PRODUCE, 1) + b"\xff\xff\xff\xff")
    link.connection.connection_lost(RESET)
    assert handlers.closed == [(CloseReason.INVALID_FRAME, "Invalid receive (size = -1)")]
    answer(handlers.waiting.pop())


def test_what_the_layer_of_tls_has_not_passed_on_is_sent_before_the_close(link: Link, handlers: Handlers) -> None:
    link.connection.security_protocol = SecurityProtocol.SSL
    link.receive(b"\xff\xff\xff\xff")
    assert (link.transport.is_closed, link.transport.is_aborted) == (True, False)
    link.connection.abort(CloseReason.SHUTDOWN)  # which does not wait for the client
    assert link.transport.is_aborted


def test_of_an_answer_with_a_file_that_cannot_be_opened_nothing_is_sent() -> None:
    """The connection is closed when the answers before it are sent."""
    first, second = MemoryRegion(b"first"), MemoryRegion(b"second")

    def fail() -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    second.retain = fail  # type: ignore[method-assign]
    sent = Sent()
    sent.sender.push([b"earlier"])
    with pytest.raises(OSError, match="Too many open files"):
        sent.sender.push([b"header", first, b"next", second])
    sent.sender.flush()
    assert sent.wire.data == b"earlier"
    assert (first.pins, sent.sender.queued_bytes) == (0, 0)
    for region in (first, second):
        region.close()
