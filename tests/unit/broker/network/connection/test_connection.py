from __future__ import annotations

import struct

import pytest

from odradek.broker.network.connection.connection import (
    MAX_TURN_MS,
    READ_AHEAD_BYTES,
    Connection,
)
from odradek.broker.network.requests.request import MAX_PIPELINED_BYTES, MAX_PIPELINED_REQUESTS
from odradek.broker.network.sockets.close_reason import CloseReason
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from odradek.protocol.messages.heartbeat import HeartbeatResponse
from tests.support.in_process.connections.network import (
    FETCH,
    HEARTBEAT,
    PRODUCE,
    FakeThrottle,
    Handlers,
    Link,
    MemoryRegion,
    answer,
    answered,
    request,
)


def test_connection_tells_where_it_came_from_and_to(link: Link) -> None:
    connection = link.connection
    assert (connection.client_host, connection.client_port) == ("192.0.2.1", 50000)
    assert (connection.local_host, connection.local_port) == ("127.0.0.1", 9092)
    assert (connection.listener_name, connection.principal) == ("PLAINTEXT", "User:ANONYMOUS")


def test_ipv4_address_mapped_into_ipv6_is_shown_as_ipv4() -> None:
    link = Link()
    link.transport.extra["peername"] = ("::ffff:192.0.2.7", 1, 0, 0)
    link.connection.connection_made(link.transport)  # type: ignore[arg-type]
    assert link.connection.client_host == "192.0.2.7"


def test_transport_reports_every_byte_it_cannot_pass_on(link: Link) -> None:
    assert link.transport.high_water == 0


def test_request_holds_the_connection_until_it_is_answered(link: Link, handlers: Handlers) -> None:
    link.receive(request(FETCH, 1) + request(HEARTBEAT, 2) + request(HEARTBEAT, 3))
    assert handlers.applied == [1]
    answer(handlers.waiting.pop())
    handlers.run_soon()
    assert handlers.applied == [1, 2]
    answer(handlers.waiting.pop())
    handlers.run_soon()
    answer(handlers.waiting.pop())
    assert answered(link) == [1, 2, 3]


def test_an_answer_leaves_at_once_and_the_next_request_is_handled_in_another_turn(
    link: Link, handlers: Handlers
) -> None:
    """What answers a request is often the handling of another one, which must not lead to the handling of a third."""
    link.receive(request(FETCH, 1) + request(HEARTBEAT, 2))
    answer(handlers.waiting.pop())
    assert (answered(link), handlers.applied) == ([1], [1])
    handlers.run_soon()
    assert handlers.applied == [1, 2]


def test_an_append_that_goes_on_with_the_connection_does_so_in_another_turn(link: Link, handlers: Handlers) -> None:
    link.receive(request(PRODUCE, 1))
    (ctx,) = handlers.waiting
    ctx.may_pipeline = False
    link.receive(request(PRODUCE, 2))
    ctx.may_pipeline = True
    link.connection.proceed()
    assert handlers.applied == [1]
    handlers.run_soon()
    assert handlers.applied == [1, 2]


def test_a_request_that_is_to_be_handled_soon_keeps_its_place(link: Link, handlers: Handlers) -> None:
    """Bytes may come before the turn in which it would be handled, and the connection may close."""
    link.receive(request(FETCH, 1) + request(FETCH, 2))
    answer(handlers.waiting.pop())
    link.receive(request(FETCH, 3) + request(FETCH, 4))
    assert handlers.applied == [1, 2]
    handlers.run_soon()
    assert handlers.applied == [1, 2]
    answer(handlers.waiting.pop())
    link.connection.abort(CloseReason.IDLE)
    handlers.run_soon()
    assert handlers.applied == [1, 2]


def test_a_connection_that_is_muted_handles_no_request_that_was_scheduled(link: Link, handlers: Handlers) -> None:
    link.receive(request(FETCH, 1) + request(HEARTBEAT, 2))
    answer(handlers.waiting.pop())
    throttle = FakeThrottle()
    link.connection.throttles.add(throttle)
    handlers.run_soon()
    assert handlers.applied == [1]
    link.connection.throttles.remove(throttle)
    assert handlers.applied == [1, 2]


def test_answers_of_one_chunk_leave_in_one_write(link: Link, handlers: Handlers) -> None:
    handlers.answer_at_once = {HEARTBEAT}
    link.receive(b"".join(request(HEARTBEAT, number) for number in range(50)))
    assert answered(link) == list(range(50))
    assert link.wire.writers == ["transport"]


def test_produce_that_waits_for_replicas_may_be_followed_by_another(link: Link, handlers: Handlers) -> None:
    link.receive(request(PRODUCE, 1) + request(PRODUCE, 2) + request(HEARTBEAT, 3) + request(PRODUCE, 4))
    assert handlers.applied == [1, 2]  # nothing overtakes, not even a Produce behind something else
    first, second = handlers.waiting
    handlers.waiting.clear()
    answer(second)
    assert answered(link) == []  # the second answer waits for the first
    assert handlers.applied == [1, 2]
    answer(first)
    handlers.run_soon()
    assert answered(link) == [1, 2]
    assert handlers.applied == [1, 2, 3]


def test_each_answer_leaves_soon_while_later_requests_wait(link: Link, handlers: Handlers) -> None:
    link.receive(b"".join(request(PRODUCE, number) for number in range(1, 5)))
    for number in range(1, 4):
        answer(handlers.waiting.pop(0))
        handlers.run_soon()
        assert answered(link) == list(range(1, number + 1))


def test_produce_whose_append_is_not_done_holds_the_connection(link: Link, handlers: Handlers) -> None:
    link.receive(request(PRODUCE, 1))
    handlers.waiting[0].may_pipeline = False
    link.receive(request(PRODUCE, 2))
    assert handlers.applied == [1]


def test_request_without_answer_lets_the_next_one_in(link: Link, handlers: Handlers) -> None:
    link.receive(request(FETCH, 1) + request(HEARTBEAT, 2))
    handlers.waiting.pop().reply(None)
    handlers.run_soon()
    assert handlers.applied == [1, 2]
    assert answered(link) == []


def test_number_of_pipelined_requests_is_bounded(link: Link, handlers: Handlers) -> None:
    link.receive(b"".join(request(PRODUCE, number) for number in range(MAX_PIPELINED_REQUESTS + 10)))
    assert len(handlers.applied) == MAX_PIPELINED_REQUESTS
    answer(handlers.waiting.pop(0))
    handlers.run_soon()
    assert len(handlers.applied) == MAX_PIPELINED_REQUESTS + 1


def test_bytes_of_pipelined_requests_are_bounded() -> None:
    handlers = Handlers()
    link = Link(handlers, max_frame_bytes=2**30)
    size = MAX_PIPELINED_BYTES // 4
    for number in range(4):
        link.receive(request(PRODUCE, number, size - 8))
    assert len(handlers.applied) == 4
    link.receive(request(PRODUCE, 4))
    assert len(handlers.applied) == 4
    answer(handlers.waiting.pop(0))
    handlers.run_soon()
    assert len(handlers.applied) == 5


def test_held_connection_stops_reading_when_it_has_enough(link: Link, handlers: Handlers) -> None:
    link.receive(request(FETCH, 1))
    link.receive(b"".join(request(HEARTBEAT, 2, 1000) for _ in range(READ_AHEAD_BYTES // 1012)))
    assert link.transport.is_reading
    link.receive(request(HEARTBEAT, 3, 2000))
    assert not link.transport.is_reading
    handlers.answer_at_once = {HEARTBEAT}
    answer(handlers.waiting.pop())
    handlers.run_soon()
    assert link.transport.is_reading


def test_large_frame_behind_a_waiting_produce_is_still_received(link: Link, handlers: Handlers) -> None:
    big = request(PRODUCE, 2, 300_000)
    link.receive(request(PRODUCE, 1))
    link.receive(big[:200_000])
    assert link.transport.is_reading
    link.receive(big[200_000:])
    assert handlers.applied == [1, 2]
    assert handlers.frames[1] == big[4:]


def test_large_frame_behind_a_waiting_fetch_is_not(link: Link, handlers: Handlers) -> None:
    big = request(PRODUCE, 2, 300_000)
    link.receive(request(FETCH, 1))
    link.receive(big[:100_000])
    assert not link.transport.is_reading
    answer(handlers.waiting.pop())
    handlers.run_soon()
    assert link.transport.is_reading
    link.receive(big[100_000:])
    assert handlers.applied == [1, 2]


def test_large_frame_is_received_without_a_chunk_in_between(link: Link, handlers: Handlers) -> None:
    big = request(FETCH, 1, 500_000)
    link.receive(big[:20])
    assert link.transport.protocol is not link.connection
    link.receive(big[20:])
    assert link.transport.protocol is link.connection
    assert handlers.frames == [big[4:]]
    link.receive(request(HEARTBEAT, 2))
    answer(handlers.waiting.pop(0))
    handlers.run_soon()
    assert handlers.applied == [1, 2]


def test_loss_while_a_large_frame_comes_in(link: Link, handlers: Handlers) -> None:
    link.receive(request(FETCH, 1, 500_000)[:1000])
    link.transport.protocol.connection_lost(None)  # type: ignore[attr-defined]
    assert handlers.closed == [(CloseReason.CLIENT_CLOSED, "")]


def test_client_that_does_not_read_gets_no_further_request_served(link: Link, handlers: Handlers) -> None:
    handlers.answer_at_once = {HEARTBEAT}
    link.transport.take(10)
    link.receive(request(HEARTBEAT, 1) + request(HEARTBEAT, 2))
    assert handlers.applied == [1, 2]
    link.receive(request(HEARTBEAT, 3))
    assert handlers.applied == [1, 2]
    link.transport.take(None)
    assert handlers.applied == [1, 2, 3]
    assert answered(link) == [1, 2, 3]


def test_client_that_never_reads_costs_a_bounded_number_of_answers(link: Link, handlers: Handlers) -> None:
    handlers.answer_at_once = {HEARTBEAT}
    link.transport.take(0)
    chunk = b"".join(request(HEARTBEAT, number) for number in range(100))
    chunks = 0
    while link.transport.is_reading:
        link.receive(chunk)
        chunks += 1
    assert chunks * len(chunk) <= READ_AHEAD_BYTES + 2 * len(chunk)
    assert len(handlers.applied) == 100  # what one chunk held, answered before the first write was tried


def test_records_are_sent_before_the_next_request_is_served(link: Link, handlers: Handlers) -> None:
    region = MemoryRegion(b"r" * 100_000)
    link.receive(request(FETCH, 1) + request(HEARTBEAT, 2))
    link.direct.room = 50_000
    handlers.waiting.pop().reply(
        FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(records=region)])])
    )
    assert handlers.applied == [1]
    link.direct.make_room(10**6)
    assert handlers.applied == [1, 2]
    assert bytes(link.wire.data).count(b"r") == 100_000
    assert region.pins == 0
    region.close()


def test_long_turn_is_interrupted_for_the_others(link: Link, handlers: Handlers) -> None:
    def slow(connection: Connection, frame: memoryview, now: int) -> None:
        handlers._handle(connection, frame, now)
        handlers.clock.advance(MAX_TURN_MS // 2)

    handlers.answer_at_once = {HEARTBEAT}
    handlers.handle = slow
    link.receive(b"".join(request(HEARTBEAT, number) for number in range(5)))
    assert handlers.applied == [0, 1]
    assert answered(link) == [0, 1]
    handlers.run_soon()
    assert handlers.applied == [0, 1, 2, 3]
    handlers.run_soon()
    assert answered(link) == [0, 1, 2, 3, 4]


def test_bad_frame_closes_after_the_requests_before_it_were_served(link: Link, handlers: Handlers) -> None:
    handlers.answer_at_once = {HEARTBEAT}
    link.receive(request(HEARTBEAT, 1) + struct.pack(">i", -1) + request(HEARTBEAT, 2))
    assert handlers.applied == [1]
    assert link.transport.is_aborted
    link.connection.connection_lost(None)
    assert handlers.closed == [(CloseReason.INVALID_FRAME, "Invalid receive (size = -1)")]


@pytest.mark.parametrize(
    ("leading", "hint"), [(b"\x16\x03\x01\x02", "TLS"), (b"GET / HTTP/1.1", "HTTP"), (b"SSH-2.0-x", "SSH")]
)
def test_other_protocols_are_named(link: Link, handlers: Handlers, leading: bytes, hint: str) -> None:
    link.receive(leading)
    link.connection.connection_lost(None)
    ((reason, detail),) = handlers.closed
    assert reason is CloseReason.INVALID_FRAME
    assert hint in detail


def test_nothing_is_served_after_the_connection_was_refused(link: Link, handlers: Handlers) -> None:
    link.receive(request(FETCH, 1) + request(HEARTBEAT, 2))
    handlers.waiting[0].close_connection()
    assert link.transport.is_aborted
    assert handlers.applied == [1]


def test_late_answer_of_a_lost_connection_goes_nowhere(link: Link, handlers: Handlers) -> None:
    region = MemoryRegion(b"r" * 100_000)
    link.receive(request(FETCH, 1))
    link.connection.connection_lost(ConnectionResetError("reset"))
    handlers.waiting.pop().reply(
        FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(records=region)])])
    )
    assert not region.was_retained
    assert answered(link) == []
    assert handlers.closed == [(CloseReason.CONNECTION_FAILED, "reset")]
    region.close()


def test_loss_releases_the_records_that_wait(link: Link, handlers: Handlers) -> None:
    region = MemoryRegion(b"r" * 100_000)
    link.receive(request(FETCH, 1))
    link.direct.room = 0
    handlers.waiting.pop().reply(
        FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(records=region)])])
    )
    assert region.pins == 1
    link.connection.connection_lost(None)
    assert region.pins == 0
    assert link.direct.is_closed
    region.close()


def test_answering_twice_is_a_bug(link: Link, handlers: Handlers) -> None:
    link.receive(request(FETCH, 1))
    answer(handlers.waiting[0])
    with pytest.raises(RuntimeError, match="answered twice"):
        answer(handlers.waiting[0])


def test_response_that_cannot_be_encoded_closes_the_connection(
    link: Link, handlers: Handlers, caplog: pytest.LogCaptureFixture
) -> None:
    link.receive(request(HEARTBEAT, 1))
    handlers.waiting.pop().reply(HeartbeatResponse(error_code=10**6))
    assert link.transport.is_aborted
    assert "Cannot encode" in caplog.text


def test_idle_connection_is_closed_only_when_its_time_is_up(link: Link, handlers: Handlers) -> None:
    handlers.answer_at_once = {HEARTBEAT}
    handlers.clock.advance(400)
    assert link.connection.close_if_idle(1000) == 600
    link.receive(request(HEARTBEAT, 1))
    handlers.clock.advance(999)
    assert link.connection.close_if_idle(1000) == 1
    assert not link.transport.is_aborted
    handlers.clock.advance(1)
    assert link.connection.close_if_idle(1000) == 0
    assert link.transport.is_aborted
    link.connection.connection_lost(None)
    assert handlers.closed[0][0] is CloseReason.IDLE


def test_client_that_is_sending_a_large_frame_is_not_idle(link: Link, handlers: Handlers) -> None:
    big = request(PRODUCE, 1, 500_000)
    for position in range(0, len(big), 50_000):
        handlers.clock.advance(600)
        link.receive(big[position : position + 50_000])
        assert link.connection.close_if_idle(1000) == 1000
    assert handlers.applied == [1]


def test_client_that_is_taking_a_large_answer_is_not_idle(link: Link, handlers: Handlers) -> None:
    region = MemoryRegion(b"r" * 100_000)
    link.receive(request(FETCH, 1))
    link.direct.room = 0
    handlers.waiting.pop().reply(
        FetchResponse(responses=[FetchableTopicResponse(partitions=[PartitionData(records=region)])])
    )
    for _ in range(3):
        handlers.clock.advance(600)
        link.direct.make_room(30_000)
        assert link.connection.close_if_idle(1000) == 1000
    handlers.clock.advance(1000)
    assert link.connection.close_if_idle(1000) == 0
    link.connection.connection_lost(None)
    region.close()


def test_frame_limit_can_be_lifted_after_authentication() -> None:
    handlers = Handlers()
    link = Link(handlers, max_frame_bytes=100)
    link.connection.allow_frames(1000)
    link.receive(request(FETCH, 1, 500))
    assert handlers.applied == [1]


@pytest.mark.parametrize(("flushes", "sent"), [(False, []), (True, [1])])
def test_an_answer_can_be_sent_before_the_handler_returns(flushes: bool, sent: list[int]) -> None:
    handlers = Handlers()
    link = Link(handlers)
    seen: list[list[int]] = []

    def handle(connection: Connection, frame: memoryview, received_ms: int) -> None:
        handlers._handle(connection, frame, received_ms)
        ctx = handlers.waiting.pop()
        answer(ctx)
        if flushes:
            ctx.flush()
        seen.append(answered(link))

    handlers.handle = handle
    link.receive(request(HEARTBEAT, 1))
    assert seen == [sent]
    assert answered(link) == [1]


def test_there_is_nothing_to_flush_on_a_closed_connection(link: Link) -> None:
    link.connection.abort(CloseReason.REQUEST_REFUSED)
    link.connection.flush_answers()
    assert answered(link) == []
