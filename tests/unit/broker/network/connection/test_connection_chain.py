"""Requests that answer one another: the connection of each goes on with its next request, which answers another."""

from __future__ import annotations

import struct

from odradek.broker.network.connection.connection import Connection
from odradek.broker.network.requests.request import RequestContext
from odradek.protocol.headers import RequestHeader
from odradek.timer.delayed_operation import DelayedOperation
from odradek.timer.purgatory import DelayedOperationPurgatory
from odradek.timer.system_timer import SystemTimer
from tests.support.in_process.connections.network import (
    FETCH,
    HEARTBEAT,
    PRODUCE,
    FakeOwner,
    Link,
    answer,
    answered,
    request,
)

CONNECTIONS = 500
"""More than can be handled within one another: Python's limit of recursion is 1,000 calls."""


class WaitingFetch(DelayedOperation):
    """A Fetch that is answered when its key is checked."""

    def __init__(self, ctx: RequestContext) -> None:
        super().__init__(60_000)
        self._ctx = ctx

    def try_complete(self) -> bool:
        return False

    def try_complete_for(self, key: object) -> bool:
        return self.force_complete()

    def on_complete(self) -> None:
        answer(self._ctx)


class ChainOfTopics(FakeOwner):
    """A Fetch waits for the topic of its number; a Produce appends to that topic, and answers the Fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.purgatory: DelayedOperationPurgatory[WaitingFetch] = DelayedOperationPurgatory(
            "Fetch", SystemTimer(self.clock)
        )
        self.handling = self.handling_max = 0
        self.appends: list[int] = []
        self.handle = self._handle

    def _handle(self, connection: Connection, frame: memoryview, received_ms: int) -> None:
        self.handling += 1
        self.handling_max = max(self.handling_max, self.handling)
        key, _, topic = struct.unpack_from(">hhi", frame)
        ctx = RequestContext(RequestHeader(key, 0, topic), connection, received_ms, len(frame))
        connection.begin(ctx)
        if key == FETCH:
            self.purgatory.try_complete_else_watch(WaitingFetch(ctx), [topic])
        elif key == PRODUCE:
            self.appends.append(topic)
            self.purgatory.check_and_complete(topic)
            answer(ctx)
        else:
            answer(ctx)
        self.handling -= 1


def test_no_request_is_handled_within_another_in_a_chain_of_connections() -> None:
    owner = ChainOfTopics()
    links = [Link(owner) for _ in range(CONNECTIONS)]
    for number, link in enumerate(links):
        link.receive(request(FETCH, number) + request(PRODUCE, number + 1) + request(HEARTBEAT, CONNECTIONS + 1))
    first = Link(owner)
    first.receive(request(PRODUCE, 0))
    while owner.soon:
        owner.run_soon()
    assert owner.handling_max == 1
    assert owner.appends == list(range(CONNECTIONS + 1))
    assert answered(first) == [0]
    assert [answered(link) for link in links] == [
        [number, number + 1, CONNECTIONS + 1] for number in range(CONNECTIONS)
    ]
    assert owner.purgatory.num_delayed == 0
