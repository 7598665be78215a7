from __future__ import annotations

from odradek.broker.network.requests.request import RequestContext, RequestTimes
from odradek.broker.network.requests.request_observer import RequestObservers, complete_all, observer_of
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.headers import RequestHeader
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.timer.clock import ManualClock
from tests.support.in_process.connections.network import Sent
from tests.support.in_process.in_process_broker import FakeConnection


class Recorder:
    def __init__(self) -> None:
        self.calls: list[str] = []
        self.times: RequestTimes | None = None

    def request_decoded(self, ctx: RequestContext, request: Request) -> None:
        self.calls.append("decoded")

    def response_made(self, ctx: RequestContext, response: Response | None) -> None:
        self.calls.append("no response" if response is None else "response")

    def request_completed(self, ctx: RequestContext) -> None:
        self.times = ctx.times
        self.calls.append("completed")


def observed(recorder: Recorder, clock: ManualClock) -> tuple[RequestContext, RequestTimes]:
    ctx = RequestContext(RequestHeader(ApiKey.HEARTBEAT, 4, 17), FakeConnection(), 0, 50)
    ctx.times = times = RequestTimes(recorder, clock.monotonic_ns, clock.monotonic_ns())
    return ctx, times


def test_each_time_is_taken_where_its_part_ends() -> None:
    recorder, clock = Recorder(), ManualClock(1000)
    ctx, times = observed(recorder, clock)
    clock.advance(1)
    times.handling_begins(ctx, HeartbeatRequest())
    clock.advance(2)
    times.handler_returned()
    clock.advance(4)
    times.response_made(ctx, HeartbeatResponse())
    clock.advance(8)
    ctx.answer = [b"four", b"bytes"]
    times.sending_begins(ctx, Sent().sender)
    clock.advance(16)
    times.completed(ctx)
    moments = [
        times.started_ns,
        times.dequeued_ns,
        times.local_completed_ns,
        times.response_completed_ns,
        times.response_dequeued_ns,
        times.completed_ns,
    ]
    assert moments == [1_000_000_000 + ms * 1_000_000 for ms in (0, 1, 3, 7, 15, 31)]
    assert times.response_bytes == 9
    assert recorder.calls == ["decoded", "response", "completed"]


def test_an_answer_within_the_handler_has_no_remote_time() -> None:
    recorder, clock = Recorder(), ManualClock()
    ctx, times = observed(recorder, clock)
    times.handling_begins(ctx, HeartbeatRequest())
    clock.advance(3)
    times.response_made(ctx, HeartbeatResponse())
    clock.advance(5)
    times.handler_returned()
    assert times.local_completed_ns == times.response_completed_ns == 3_000_000


def test_a_request_that_closes_its_connection_is_completed_without_sending() -> None:
    recorder, clock = Recorder(), ManualClock()
    ctx, times = observed(recorder, clock)
    ctx.close_connection()
    assert recorder.calls == ["no response", "completed"]
    assert times.response_dequeued_ns == times.completed_ns
    assert ctx.times is None


def test_completed_once_however_often_it_is_asked_for() -> None:
    recorder = Recorder()
    ctx, times = observed(recorder, ManualClock())
    complete_all([ctx, ctx])
    complete_all([ctx])
    assert recorder.calls == ["completed"]
    assert recorder.times is times


def test_several_observers_get_every_call_and_none_costs_nothing() -> None:
    first, second = Recorder(), Recorder()
    assert observer_of([]) is None
    both = observer_of([first, second])
    assert isinstance(both, RequestObservers)
    ctx = RequestContext(RequestHeader(ApiKey.HEARTBEAT, 4, 17), FakeConnection(), 0, 50)
    times = RequestTimes(both, ManualClock().monotonic_ns, 0)
    times.handling_begins(ctx, HeartbeatRequest())
    times.response_made(ctx, None)
    times.completed(ctx)
    assert first.calls == second.calls == ["decoded", "no response", "completed"]


def test_the_time_of_the_loop_is_that_of_the_steps_the_encoding_and_the_sending() -> None:
    recorder, clock = Recorder(), ManualClock(1000)
    ctx, times = observed(recorder, clock)
    clock.advance(1)  # decoding
    times.handling_begins(ctx, HeartbeatRequest())
    assert not times.begin_step(), "the first step began with the request"
    clock.advance(2)
    assert times.loop_ns == 3_000_000
    times.end_step()
    clock.advance(1_000)  # waits
    times.response_made(ctx, HeartbeatResponse())
    clock.advance(4)  # encoding
    ctx.answer = [b"answer"]
    sender = Sent().sender
    times.sending_begins(ctx, sender)
    clock.advance(500)  # waits for the peer
    sender._sending_ns = 8_000_000
    times.completed(ctx)
    assert times.loop_ns == 15_000_000
    assert sender.take_sending_ns() == 0


def test_what_is_sent_within_a_step_counts_once() -> None:
    recorder, clock = Recorder(), ManualClock(1000)
    ctx, times = observed(recorder, clock)
    times.response_made(ctx, HeartbeatResponse())
    clock.advance(3)
    ctx.answer = [b"answer"]
    sender = Sent().sender
    times.sending_begins(ctx, sender)
    sender._sending_ns = 8_000_000
    clock.advance(8)
    times.completed(ctx)
    assert times.loop_ns == 11_000_000


def test_sending_is_measured_only_for_requests_that_are_observed() -> None:
    recorder, clock = Recorder(), ManualClock()
    ctx, times = observed(recorder, clock)
    sender = Sent().sender
    times.response_made(ctx, HeartbeatResponse())
    times.sending_begins(ctx, sender)
    assert sender.now_ns is not None
    times.completed(ctx)
    assert sender.now_ns is None
