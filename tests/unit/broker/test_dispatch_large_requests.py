"""Several clients, each with a request of which the places of large requests have room for one."""

from __future__ import annotations

import asyncio
import itertools
import struct
from collections.abc import Callable, Iterator, Sequence

import pytest

from odradek.broker import dispatch
from odradek.broker.network.requests.large_requests import LARGE_REQUESTS_BYTES
from odradek.broker.network.requests.request import RequestContext
from odradek.broker.network.sockets.close_reason import CloseReason
from odradek.broker.security.authorizer.ports import Action, AuthorizableRequestContext
from odradek.controller.model.acls import CLUSTER_NAME, AclOperation, ResourceType
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.headers import RequestHeader, encode_request
from odradek.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from odradek.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from odradek.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse, StopReplicaTopicState
from odradek.timer.clock import ManualClock
from odradek.timer.sliced_work import SLICE_MS, Steps, Wait
from tests.support.in_process.connections.dispatching import Broker
from tests.support.in_process.connections.network import Link
from tests.support.in_process.security.scripted_authorizer import ScriptedAuthorizer
from tests.support.transcripts.rights import Right


@pytest.fixture
def broker() -> Iterator[Broker]:
    served = Broker()
    yield served
    served.close()


def many(count: int) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=[f"group-{number:06d}" for number in range(count)])


def described(count: int) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=[DescribedGroup(group_id=f"group-{number:06d}") for number in range(count)])


COUNT = LARGE_REQUESTS_BYTES // 20


def advance(broker: Broker) -> None:
    while broker.timer.size:
        broker.timer.advance()


def send(broker: Broker, request: Request, version: int) -> Link:
    link = Link(broker.owner)
    payload = encode_request(RequestHeader(request.API_KEY, version, 5, "me"), request)
    link.receive(struct.pack(">i", len(payload)) + payload)
    return link


def test_a_place_is_kept_until_the_answer_is_encoded(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The values of an answer need as much memory."""
    answered: list[bool] = []
    now = itertools.count(step=SLICE_MS)

    def handle(services: object, ctx: RequestContext, request: Request) -> None:
        answered.append(bool(first.wire.data))
        ctx.reply(described(2 * COUNT))

    broker.serve(ApiKey.DESCRIBE_GROUPS, handle)
    first = send(broker, many(COUNT), 5)
    send(broker, many(COUNT), 5)
    monkeypatch.setattr(ManualClock, "monotonic_ms", lambda clock: next(now))  # each slice is one step
    advance(broker)
    assert answered == [False, True]


def test_a_request_that_waits_for_the_controller_keeps_its_place(broker: Broker) -> None:
    """And no other kind of requests waits for it."""
    asked: list[int] = []
    is_over = asyncio.Event()

    async def work(ctx: RequestContext) -> None:
        await is_over.wait()
        ctx.reply(DeleteTopicsResponse())

    def spawning(services: object, ctx: RequestContext, request: Request) -> None:
        asked.append(ctx.header.api_key)
        broker.dispatcher.spawn(ctx, request, work(ctx))

    def handle(services: object, ctx: RequestContext, request: Request) -> None:
        asked.append(ctx.header.api_key)
        ctx.reply(described(1))

    async def scenario() -> None:
        broker.serve(ApiKey.DELETE_TOPICS, spawning)
        broker.serve(ApiKey.DESCRIBE_GROUPS, handle)
        request = DeleteTopicsRequest(topic_names=["t" * 100] * (LARGE_REQUESTS_BYTES // 150), timeout_ms=1)
        for _ in range(2):
            send(broker, request, 1)
        send(broker, many(COUNT), 5)
        advance(broker)
        assert asked == [ApiKey.DELETE_TOPICS, ApiKey.DESCRIBE_GROUPS]
        is_over.set()
        await asyncio.gather(*broker.tasks)
        advance(broker)
        assert asked[2:] == [ApiKey.DELETE_TOPICS]
        await asyncio.gather(*broker.tasks)

    asyncio.run(scenario())


def test_a_request_that_waits_is_handled_when_its_connection_is_gone(broker: Broker) -> None:
    """As in Apache Kafka; and it counts until then."""
    ends: list[Callable[[], None]] = []
    held: list[RequestContext] = []

    def work(ctx: RequestContext) -> Steps:
        yield Wait(ends.append)
        held.append(ctx)
        ctx.reply(described(1))

    def handle(services: object, ctx: RequestContext, request: Request) -> None:
        broker.dispatcher.in_slices(ctx, request, work(ctx))

    broker.serve(ApiKey.DESCRIBE_GROUPS, handle)
    links = [send(broker, many(COUNT), 5) for _ in range(2)]
    advance(broker)
    for link in links:
        link.connection.connection_lost(ConnectionResetError("reset"))
    assert len(ends) == 1, "the second request waits for the place of the first"
    assert broker.owner.abandoned.of("PLAINTEXT") == 2
    for left in (1, 0):
        ends.pop()()
        advance(broker)
        assert broker.owner.abandoned.of("PLAINTEXT") == left
    assert len(held) == 2


def test_a_request_that_waits_for_nothing_but_its_answer_is_not_abandoned(broker: Broker) -> None:
    """It may be a member of a group that waits for the others."""
    broker.serve(ApiKey.DESCRIBE_GROUPS, lambda services, ctx, request: None)
    link = send(broker, many(COUNT), 5)
    advance(broker)
    link.connection.connection_lost(ConnectionResetError("reset"))
    assert broker.owner.abandoned.of("PLAINTEXT") == 0


CLUSTER_ACTION = (AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)


class FailingAuthorizer(ScriptedAuthorizer):
    """A custom one with a bug."""

    def authorize(self, ctx: AuthorizableRequestContext, actions: Sequence[Action], /) -> list[bool]:
        raise RuntimeError("no rights")


@pytest.mark.parametrize(
    ("authorizer", "waits"),
    [
        (None, False),
        (ScriptedAuthorizer(CLUSTER_ACTION), False),
        (ScriptedAuthorizer(), True),
        (FailingAuthorizer(), True),
    ],
)
def test_what_the_controller_sends_waits_for_no_client_and_what_others_send_as_it_waits(
    broker: Broker, authorizer: ScriptedAuthorizer | None, waits: bool
) -> None:
    broker.services.authorizer = authorizer
    asked: list[int] = []
    kept: list[object] = []

    def waiting(services: object, ctx: RequestContext, request: Request) -> None:
        asked.append(ctx.header.api_key)
        broker.dispatcher.in_slices(ctx, request, (Wait(kept.append) for _ in range(1)))

    def handle(services: object, ctx: RequestContext, request: Request) -> None:
        asked.append(ctx.header.api_key)
        ctx.reply(StopReplicaResponse())

    broker.serve(ApiKey.DESCRIBE_GROUPS, waiting)
    broker.serve(ApiKey.STOP_REPLICA, handle)
    for _ in range(2):
        send(broker, many(COUNT), 5)
    states = [StopReplicaTopicState(topic_name="t" * 100)] * 1000
    send(broker, StopReplicaRequest(topic_states=states), 4)
    advance(broker)
    expected = [ApiKey.DESCRIBE_GROUPS] if waits else [ApiKey.STOP_REPLICA, ApiKey.DESCRIBE_GROUPS]
    assert sorted(asked) == expected, "one of the two clients"


@pytest.mark.parametrize(("rights", "is_decoded"), [((CLUSTER_ACTION,), True), ((), False)])
def test_only_a_broker_may_send_the_values_of_a_whole_cluster(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, rights: tuple[Right, ...], is_decoded: bool
) -> None:
    """And only the handler writes the audit log."""
    monkeypatch.setattr(dispatch, "MAX_DECODED_VALUES", 1000)
    broker.services.authorizer = authorizer = ScriptedAuthorizer(*rights)
    broker.serve(ApiKey.STOP_REPLICA, lambda services, ctx, request: ctx.reply(StopReplicaResponse()))
    states = [StopReplicaTopicState(topic_name="t" * 100)] * 1000
    link = send(broker, StopReplicaRequest(topic_states=states), 4)
    advance(broker)
    assert bool(link.wire.data) is is_decoded
    if not is_decoded:
        link.connection.connection_lost(None)
        assert broker.owner.closed[-1][0] is CloseReason.INVALID_REQUEST
    (action,) = authorizer.asked
    assert not action.log_if_allowed
    assert not action.log_if_denied
