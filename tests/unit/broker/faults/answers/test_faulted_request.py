from __future__ import annotations

import pytest

from odradek.broker.faults.answers.faulted_request import FaultedRequest
from odradek.broker.network.requests.request import RequestContext
from odradek.protocol.codec.schema import Response
from odradek.protocol.headers import RequestHeader
from odradek.protocol.messages.heartbeat import HeartbeatResponse
from tests.support.in_process.in_process_broker import FakeConnection


def make(delivered: list[Response | None]) -> tuple[RequestContext, FaultedRequest]:
    outer = RequestContext(RequestHeader(12, 4, 1, "me"), FakeConnection(), 5, 100)
    return outer, FaultedRequest(outer, delivered.append)


def test_the_answer_goes_to_the_fault_and_not_to_the_client() -> None:
    delivered: list[Response | None] = []
    outer, inner = make(delivered)
    inner.slices = object()  # type: ignore[assignment]  # the handler found that the answer may be large
    inner.reply(HeartbeatResponse())
    assert delivered == [HeartbeatResponse()]
    assert not outer.is_answered
    assert outer.slices is inner.slices
    with pytest.raises(RuntimeError, match="answered twice"):
        inner.reply(None)


def test_a_handler_that_closes_the_connection_closes_it() -> None:
    outer, inner = make([])
    inner.close_connection()
    assert outer.is_answered
    assert inner.is_answered
    assert outer.connection.close_reason == "request refused"  # type: ignore[attr-defined]
