"""What faults do to a connection and to those that watch requests."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from odradek.broker.network.frames.memory_pool import MemoryPool
from odradek.broker.network.requests.request import RequestContext
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.headers import RequestHeader, encode_request
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from tests.support.in_process.connections.faulty_dispatching import Faulty
from tests.support.in_process.connections.network import Link


@pytest.fixture
def broker() -> Iterator[Faulty]:
    served = Faulty()
    yield served
    served.close()


class Observer:
    def __init__(self) -> None:
        self.seen: list[tuple[str, object]] = []

    def request_decoded(self, ctx: RequestContext, request: Request) -> None:
        self.seen.append(("decoded", ctx))

    def response_made(self, ctx: RequestContext, response: Response | None) -> None:
        self.seen.append(("response", getattr(response, "error_code", None)))

    def request_completed(self, ctx: RequestContext) -> None:
        self.seen.append(("completed", ctx))


@pytest.mark.parametrize(
    ("action", "code"),
    [({"action": "error", "code": "NOT_COORDINATOR", "applied": True}, ErrorCode.NOT_COORDINATOR),
     ({"action": "error", "code": "NOT_COORDINATOR"}, ErrorCode.NOT_COORDINATOR),
     ({"action": "half_answer"}, 0),
     ({"action": "duplicate"}, 0),
     ({"action": "drop"}, None),
     ({"action": "drop", "applied": True}, 0)],
)  # fmt: skip
def test_observers_see_the_answer_that_the_client_gets(
    broker: Faulty, action: dict[str, object], code: ErrorCode | None
) -> None:
    observer = Observer()
    broker.dispatcher.observe(observer)
    broker.faults.add(action)
    broker.ask()
    while broker.owner.soon:
        broker.owner.run_soon()
    decoded, response, completed = observer.seen
    assert (decoded[0], response, completed[0]) == ("decoded", ("response", code), "completed")
    assert decoded[1] is completed[1], "the handler's context is another one"


def test_an_answer_that_never_comes_is_over_with_its_connection(broker: Faulty) -> None:
    observer = Observer()
    broker.dispatcher.observe(observer)
    broker.faults.add({"action": "black_hole", "applied": True})
    broker.ask()
    assert [kind for kind, _ in observer.seen] == ["decoded", "response"]
    assert broker.applied
    broker.link.connection.connection_lost(None)
    assert [kind for kind, _ in observer.seen] == ["decoded", "response", "completed"]


@pytest.mark.parametrize(
    "action",
    [{"action": "black_hole"}, {"action": "delay", "ms": "1h"}, {"action": "delay", "ms": "1h", "before": True}],
    ids=str,
)
def test_the_memory_of_a_held_request_is_free(broker: Faulty, action: dict[str, object]) -> None:
    pool = MemoryPool(1_000_000, broker.owner.call_soon)
    broker.owner.memory_pool = pool
    broker.link = Link(broker.owner)
    broker.faults.add(action)
    header = RequestHeader(ApiKey.HEARTBEAT, 4, 5, "me")
    frame = encode_request(header, HeartbeatRequest(group_id="g" * 10_000))
    broker.link.receive(struct.pack(">i", len(frame)))
    assert pool.available < 1_000_000
    broker.link.receive(frame)
    assert pool.available == 1_000_000
    assert not broker.link.wire.data


def test_requests_behind_a_delayed_one_wait_and_are_answered_after_it(broker: Faulty) -> None:
    broker.faults.add({"action": "delay", "ms": 500, "before": True, "nth": 1})
    broker.ask(1)
    broker.ask(2)
    assert not broker.applied
    broker.advance(499)
    assert not broker.applied
    broker.advance(1)
    broker.owner.run_soon()
    assert [ctx.header.correlation_id for ctx in broker.applied] == [1, 2]
    data = bytes(broker.link.wire.data)
    (size,) = struct.unpack_from(">i", data)
    assert struct.unpack_from(">i", data, 4) == (1,)
    assert struct.unpack_from(">i", data, 4 + size + 4) == (2,)


def test_a_request_that_waits_takes_effect_though_its_client_has_gone(broker: Faulty) -> None:
    broker.faults.add({"action": "delay", "ms": 500, "before": True})
    broker.ask()
    broker.link.connection.connection_lost(ConnectionResetError())
    broker.advance(500)
    assert len(broker.applied) == 1


def test_after_the_stop_nothing_that_is_delayed_happens(broker: Faulty) -> None:
    broker.faults.add({"action": "delay", "ms": 500, "before": True})
    broker.ask()
    broker.faults.close()
    broker.advance(1_000)
    assert not broker.applied
    assert broker.timer.next_deadline_ms() is None


def test_without_rules_the_dispatcher_knows_no_interceptor(broker: Faulty) -> None:
    assert broker.dispatcher._interceptor is None
    broker.faults.add({"action": "drop", "client_id": "another"})
    assert broker.dispatcher._interceptor is not None
    broker.ask()
    broker.faults.clear()
    assert broker.dispatcher._interceptor is None
    assert len(broker.applied) == 1


def test_requests_of_the_broker_itself_meet_no_rule(broker: Faulty) -> None:
    answers: list[Response | None] = []
    connection = SimpleNamespace(
        is_own_broker=True, complete=lambda ctx, response: answers.append(response), client_host="", client_port=0
    )
    broker.faults.add({"action": "black_hole"})
    ctx = RequestContext(RequestHeader(ApiKey.HEARTBEAT, 4, 1, "me"), connection, 0, 0)  # type: ignore[arg-type]
    broker.dispatcher.serve(ctx, HeartbeatRequest())
    assert answers == [HeartbeatResponse(throttle_time_ms=7)]
