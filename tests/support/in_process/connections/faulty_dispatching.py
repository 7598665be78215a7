"""A dispatcher with faults behind a connection without a socket; its only handler answers heartbeats."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from odradek.broker.faults.faults import Faults
from odradek.broker.network.requests.request import RequestContext
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.headers import RequestHeader, encode_request
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.timer.clock import ManualClock
from tests.support.in_process.connections.dispatching import Broker


class Faulty(Broker):
    """`applied` are the contexts that the handler got."""

    def __init__(self) -> None:
        super().__init__()
        self.applied: list[RequestContext] = []
        self.serve(ApiKey.HEARTBEAT, self._handle)
        services = SimpleNamespace(
            clock=self.owner.clock,
            timer=self.timer,
            slices=self.slices,
            io_pool=self.owner.io_pool,
            metadata_cache=SimpleNamespace(topic_name=lambda topic_id: None),
        )
        self.faults = Faults(self.dispatcher, services)  # type: ignore[arg-type]

    def _handle(self, services: object, ctx: RequestContext, request: Request) -> None:
        self.applied.append(ctx)
        ctx.reply(HeartbeatResponse(throttle_time_ms=7))

    def ask(self, correlation_id: int = 5, *, client_id: str = "me") -> None:
        header = RequestHeader(ApiKey.HEARTBEAT, 4, correlation_id, client_id)
        self.send(encode_request(header, HeartbeatRequest(group_id="g")))

    def advance(self, ms: int) -> None:
        cast("ManualClock", self.owner.clock).advance(ms)
        self.timer.advance()
