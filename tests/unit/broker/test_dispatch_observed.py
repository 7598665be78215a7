from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import cast

import pytest

from odradek.broker.dispatch import LARGE_FRAME_BYTES
from odradek.broker.network.requests.request import RequestContext, RequestTimes
from odradek.broker.network.sockets.close_reason import CloseReason
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.codec import encode
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.headers import RequestHeader, encode_request
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from odradek.timer.clock import ManualClock
from odradek.timer.sliced_work import Steps
from tests.support.in_process.connections.dispatching import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    served = Broker()
    yield served
    served.close()


class Observer:
    def __init__(self) -> None:
        self.calls: list[tuple[str, object]] = []
        self.times: list[RequestTimes] = []

    def request_decoded(self, ctx: RequestContext, request: Request) -> None:
        self.calls.append(("decoded", type(request)))

    def response_made(self, ctx: RequestContext, response: Response | None) -> None:
        self.calls.append(("response", type(response)))

    def request_completed(self, ctx: RequestContext) -> None:
        assert ctx.times is not None
        self.times.append(ctx.times)
        self.calls.append(("completed", ctx.header.correlation_id))


HEARTBEAT_SEEN = [("decoded", HeartbeatRequest), ("response", HeartbeatResponse), ("completed", 5)]


def test_an_observer_sees_a_request_from_its_frame_to_the_last_byte_of_its_response(broker: Broker) -> None:
    contexts: list[RequestContext] = []
    broker.serve(ApiKey.HEARTBEAT, lambda services, ctx, request: contexts.append(ctx))
    observer = Observer()
    broker.dispatcher.observe(observer)
    clock = cast("ManualClock", broker.owner.clock)
    broker.send(encode_request(RequestHeader(ApiKey.HEARTBEAT, 4, 5, "me"), HeartbeatRequest()))
    broker.link.transport.room = 0
    clock.advance(2)
    contexts[0].reply(HeartbeatResponse())
    clock.advance(3)
    assert observer.calls == HEARTBEAT_SEEN[:2]
    broker.link.transport.take(None)
    assert observer.calls == HEARTBEAT_SEEN
    times = observer.times[0]
    assert times.response_completed_ns - times.local_completed_ns == 2_000_000
    assert times.completed_ns - times.response_dequeued_ns == 3_000_000
    assert times.response_bytes == len(broker.link.wire.data)


def test_a_response_that_is_lost_with_its_connection_completes_the_request(broker: Broker) -> None:
    contexts: list[RequestContext] = []
    broker.serve(ApiKey.HEARTBEAT, lambda services, ctx, request: contexts.append(ctx))
    observer = Observer()
    broker.dispatcher.observe(observer)
    broker.send(encode_request(RequestHeader(ApiKey.HEARTBEAT, 4, 5, "me"), HeartbeatRequest()))
    broker.link.transport.room = 0
    contexts[0].reply(HeartbeatResponse())
    broker.link.connection.abort(CloseReason.IDLE)
    broker.closed()
    assert observer.calls == HEARTBEAT_SEEN


def test_a_request_whose_connection_has_gone_is_completed_when_it_is_answered(broker: Broker) -> None:
    contexts: list[RequestContext] = []
    broker.serve(ApiKey.HEARTBEAT, lambda services, ctx, request: contexts.append(ctx))
    observer = Observer()
    broker.dispatcher.observe(observer)
    broker.send(encode_request(RequestHeader(ApiKey.HEARTBEAT, 4, 5, "me"), HeartbeatRequest()))
    broker.link.connection.abort(CloseReason.IDLE)
    broker.closed()
    assert observer.calls == HEARTBEAT_SEEN[:1]
    contexts[0].reply(HeartbeatResponse())
    assert observer.calls == HEARTBEAT_SEEN


def test_work_in_slices_is_local_time(broker: Broker) -> None:
    clock = cast("ManualClock", broker.owner.clock)

    def handle(services: object, ctx: RequestContext, request: Request) -> None:
        def work() -> Steps:
            for _ in range(4):
                clock.advance(100)
                yield None

        broker.dispatcher.in_slices(ctx, request, work())
        contexts.append(ctx)

    contexts: list[RequestContext] = []
    broker.serve(ApiKey.HEARTBEAT, handle)
    observer = Observer()
    broker.dispatcher.observe(observer)
    broker.send(encode_request(RequestHeader(ApiKey.HEARTBEAT, 4, 5, "me"), HeartbeatRequest()))
    while broker.timer.advance():
        pass
    clock.advance(7)
    contexts[0].reply(HeartbeatResponse())
    broker.timer.advance()
    times = observer.times[0]
    assert times.local_completed_ns - times.dequeued_ns == 400_000_000
    assert times.response_completed_ns - times.local_completed_ns == 7_000_000


def test_without_observers_a_request_has_no_times(broker: Broker) -> None:
    contexts: list[RequestContext] = []
    broker.serve(ApiKey.HEARTBEAT, lambda services, ctx, request: contexts.append(ctx))
    observer = Observer()
    broker.dispatcher.observe(observer)
    broker.dispatcher.stop_observing(observer)
    broker.send(encode_request(RequestHeader(ApiKey.HEARTBEAT, 4, 5, "me"), HeartbeatRequest()))
    contexts[0].reply(HeartbeatResponse())
    assert contexts[0].times is None
    assert observer.calls == []


def test_api_versions_in_an_unknown_version_is_not_observed(broker: Broker) -> None:
    observer = Observer()
    broker.dispatcher.observe(observer)
    broker.send(struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 5, 2) + b"me" + b"\0")
    assert broker.answer(ApiKey.API_VERSIONS, 0).error_code == ErrorCode.UNSUPPORTED_VERSION  # type: ignore[attr-defined]
    assert not observer.calls


class FailingObserver(Observer):
    """Raises in each of its calls."""

    def request_decoded(self, ctx: RequestContext, request: Request) -> None:
        raise RuntimeError("decoded")

    def response_made(self, ctx: RequestContext, response: Response | None) -> None:
        raise RuntimeError("response")

    def request_completed(self, ctx: RequestContext) -> None:
        raise RuntimeError("completed")


@pytest.mark.parametrize("number_of_observers", [1, 2])
def test_an_observer_that_raises_is_logged_once_and_the_client_gets_its_answers(
    broker: Broker, caplog: pytest.LogCaptureFixture, number_of_observers: int
) -> None:
    broker.serve(ApiKey.HEARTBEAT, lambda services, ctx, request: ctx.reply(HeartbeatResponse()))
    broker.dispatcher.observe(FailingObserver())
    observer = Observer()
    if number_of_observers == 2:
        broker.dispatcher.observe(observer)
    for _ in range(2):
        assert broker.call(HeartbeatRequest(), 4) == HeartbeatResponse()
    assert observer.calls == HEARTBEAT_SEEN * 2 * (number_of_observers - 1)
    [message] = caplog.messages
    assert message.startswith("FailingObserver failed at")


@pytest.mark.parametrize("group_id", ["g", "x" * LARGE_FRAME_BYTES], ids=["small", "in slices"])
def test_an_observer_may_copy_the_bytes_of_a_request_and_they_are_not_held(broker: Broker, group_id: str) -> None:
    bodies: list[bytes | None] = []

    class Copier(Observer):
        def request_decoded(self, ctx: RequestContext, request: Request) -> None:
            assert ctx.times is not None
            bodies.append(None if ctx.times.body is None else bytes(ctx.times.body))

    contexts: list[RequestContext] = []
    broker.serve(ApiKey.SYNC_GROUP, lambda services, ctx, request: contexts.append(ctx))
    broker.dispatcher.observe(Copier())
    request = SyncGroupRequest(group_id="g", assignments=[SyncGroupRequestAssignment(assignment=group_id.encode())])
    broker.send(encode_request(RequestHeader(ApiKey.SYNC_GROUP, 5, 5, "me"), request))
    (ctx,) = contexts
    assert bodies == [encode(request, 5)]
    assert ctx.times is not None
    assert ctx.times.body is None
