"""Handlers that are generators."""

from __future__ import annotations

from typing import cast

from odradek.broker.apis.services import Services, in_slices, now_or_in_slices
from odradek.broker.network.requests.request import RequestContext
from odradek.protocol.api import ApiKey
from odradek.protocol.headers import RequestHeader
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.timer.sliced_work import Steps, Wait
from tests.support.in_process.in_process_broker import FakeConnection


@in_slices
def handle(broker: Services, ctx: RequestContext, request: HeartbeatRequest) -> Steps:
    """Takes two steps."""
    yield None
    yield None


class Broker:
    """A fake of the services that records the work to do in slices."""

    def __init__(self) -> None:
        self.begun: list[tuple[RequestContext, object, Steps]] = []

    def in_slices(self, ctx: RequestContext, request: object, work: Steps) -> None:
        self.begun.append((ctx, request, work))


def test_a_generator_is_a_handler() -> None:
    broker, request = Broker(), HeartbeatRequest()
    ctx = RequestContext(RequestHeader(ApiKey.HEARTBEAT, 4, 1), FakeConnection(), 0, 0)
    handle(cast("Services", broker), ctx, request)
    ((found_ctx, found_request, work),) = broker.begun
    assert (found_ctx, found_request, list(work)) == (ctx, request, [None, None])


def test_little_is_done_now_and_much_in_slices() -> None:
    broker, request = Broker(), HeartbeatRequest()
    ctx = RequestContext(RequestHeader(ApiKey.HEARTBEAT, 4, 1), FakeConnection(), 0, 0)
    done: list[str] = []

    def work(name: str) -> Steps:
        yield None
        done.append(name)

    for name in ("little", "much"):
        now_or_in_slices(cast("Services", broker), ctx, request, work(name), is_small=name == "little")
    assert (done, len(broker.begun)) == (["little"], 1)


def test_little_that_has_to_wait_goes_on_in_slices() -> None:
    broker, request = Broker(), HeartbeatRequest()
    ctx = RequestContext(RequestHeader(ApiKey.HEARTBEAT, 4, 1), FakeConnection(), 0, 0)
    done: list[str] = []
    wait = Wait(lambda end: None)

    def work() -> Steps:
        done.append("before")
        yield wait
        done.append("behind")
        yield None

    now_or_in_slices(cast("Services", broker), ctx, request, work(), is_small=True)
    ((found_ctx, found_request, rest),) = broker.begun
    assert (done, found_ctx, found_request) == (["before"], ctx, request)
    assert list(rest) == [wait, None]
    assert done == ["before", "behind"]
