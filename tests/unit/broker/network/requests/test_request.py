from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from odradek.broker.network.requests.request import RequestContext, RequestObserver, RequestTimes
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Response
from odradek.protocol.headers import RequestHeader
from odradek.protocol.messages.heartbeat import HeartbeatResponse
from odradek.timer.clock import ManualClock


class _Connection:
    """Remembers what was answered, and whether the context was answered by then."""

    def __init__(self) -> None:
        self.completed: list[tuple[RequestContext, Response | None, bool]] = []
        self.closed: list[tuple[str, bool]] = []
        self.ctx: RequestContext | None = None
        self.flushes = 0

    def complete(self, ctx: RequestContext, response: Response | None) -> None:
        self.completed.append((ctx, response, ctx.is_answered))

    def flush_answers(self) -> None:
        self.flushes += 1

    def refuse(self, ctx: RequestContext, reason: str) -> None:
        assert ctx is self.ctx
        self.closed.append((reason, ctx.is_answered))


def received() -> tuple[RequestContext, _Connection]:
    connection = _Connection()
    ctx = RequestContext(RequestHeader(ApiKey.HEARTBEAT, 4, 17), connection, 1000, 50)  # type: ignore[arg-type]
    connection.ctx = ctx
    return ctx, connection


def test_request_that_arrives_is_unanswered_and_holds_its_connection() -> None:
    ctx, connection = received()
    assert (ctx.received_ms, ctx.size) == (1000, 50)
    assert not ctx.is_answered
    assert not ctx.may_pipeline
    assert ctx.answer is None
    assert connection.completed == []


def test_answer_goes_to_the_connection_which_already_sees_it_answered() -> None:
    ctx, connection = received()
    response = HeartbeatResponse()
    ctx.reply(response)
    assert connection.completed == [(ctx, response, True)]


def test_bytes_are_an_answer_and_there_is_one_answer() -> None:
    ctx, connection = received()
    ctx.reply_bytes(b"frame")
    assert connection.completed == [(ctx, None, True)]
    assert ctx.answer == [b"frame"]
    with pytest.raises(RuntimeError, match="answered twice"):
        ctx.reply_bytes(b"frame")


def test_times_of_an_answer_of_bytes_are_taken_without_the_response() -> None:
    ctx, _ = received()
    made: list[object] = []
    observer = SimpleNamespace(response_made=lambda ctx, response: made.append(response))
    clock = ManualClock()
    ctx.times = times = RequestTimes(cast("RequestObserver", observer), clock.monotonic_ns, clock.monotonic_ns())
    clock.advance(5)
    ctx.reply_bytes(b"frame")
    assert made == [None]
    assert times.response_completed_ns - times.started_ns == 5_000_000


def test_no_answer_completes_a_request_too() -> None:
    ctx, connection = received()
    ctx.reply(None)
    assert connection.completed == [(ctx, None, True)]


def test_second_answer_is_a_bug_that_names_the_request() -> None:
    ctx, connection = received()
    ctx.reply(HeartbeatResponse())
    with pytest.raises(RuntimeError, match=r"answered twice: .*17"):
        ctx.reply(HeartbeatResponse())
    assert len(connection.completed) == 1


def test_closing_takes_the_place_of_the_answer() -> None:
    ctx, connection = received()
    ctx.close_connection()
    assert connection.closed == [("request refused", True)]
    assert connection.completed == []
    with pytest.raises(RuntimeError):
        ctx.reply(HeartbeatResponse())


def test_a_handler_with_work_left_sends_its_answer_first() -> None:
    ctx, connection = received()
    ctx.reply(HeartbeatResponse())
    ctx.flush()
    assert connection.flushes == 1


def test_misspelt_flag_is_an_error_and_not_a_new_attribute() -> None:
    ctx, _ = received()
    with pytest.raises(AttributeError):
        ctx.may_pipline = True  # type: ignore[attr-defined]
