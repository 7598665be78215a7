"""Answers that quote too long a text of the request."""

from __future__ import annotations

import asyncio
from collections.abc import Generator, Iterator

import pytest

from odradek.broker.dispatch import LARGE_FRAME_BYTES
from odradek.broker.network.requests.request import RequestContext
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.limits import MAX_STRING_BYTES
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode
from odradek.protocol.headers import RequestHeader, encode_request
from odradek.protocol.messages.describe_groups import DescribedGroup, DescribeGroupsRequest, DescribeGroupsResponse
from tests.support.in_process.connections.dispatching import Broker


@pytest.fixture
def broker() -> Iterator[Broker]:
    served = Broker()
    yield served
    served.close()


LONG = "x" * MAX_STRING_BYTES


def many(count: int) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=[f"group-{number:06d}" for number in range(count)])


@pytest.mark.parametrize("is_spawned", [True, False])
def test_an_answer_that_cannot_be_encoded_becomes_an_error(
    broker: Broker, caplog: pytest.LogCaptureFixture, is_spawned: bool
) -> None:
    """Where the handler has work of its own; once, as the error might not be encoded either."""
    unserializable = DescribeGroupsResponse(groups=[DescribedGroup(group_id="x" * (MAX_STRING_BYTES + 1))])

    async def work(ctx: RequestContext) -> None:
        ctx.reply(unserializable)

    def handle(services: object, ctx: RequestContext, request: Request) -> None:
        if is_spawned:
            broker.dispatcher.spawn(ctx, request, work(ctx))
        else:
            broker.dispatcher.in_slices(ctx, request, answer(ctx))

    def answer(ctx: RequestContext) -> Generator[None, None, None]:
        yield
        ctx.reply(unserializable)

    async def scenario() -> None:
        broker.serve(ApiKey.DESCRIBE_GROUPS, handle)
        broker.send(
            encode_request(
                RequestHeader(ApiKey.DESCRIBE_GROUPS, 5, 5, "me"), DescribeGroupsRequest(groups=[LONG, LONG])
            )
        )
        await asyncio.sleep(0)
        while broker.timer.size:
            broker.timer.advance()

    asyncio.run(scenario())
    refused = broker.answer(ApiKey.DESCRIBE_GROUPS, 5)
    assert isinstance(refused, DescribeGroupsResponse)
    assert [group.error_code for group in refused.groups] == [ErrorCode.UNKNOWN_SERVER_ERROR] * 2
    (record,) = caplog.records
    assert "too long to be serialized" in record.getMessage()
    assert record.exc_info is None, "clients can provoke it"


def test_an_answer_to_long_arrays_that_cannot_be_encoded_closes_the_connection(broker: Broker) -> None:
    """The request is freed in slices then, and is not there any more."""

    def handle(services: object, ctx: RequestContext, request: Request) -> None:
        broker.dispatcher.in_slices(ctx, request, answer(ctx))

    def answer(ctx: RequestContext) -> Generator[None, None, None]:
        yield
        ctx.reply(DescribeGroupsResponse(groups=[DescribedGroup(group_id="x" * (MAX_STRING_BYTES + 1))]))

    broker.serve(ApiKey.DESCRIBE_GROUPS, handle)
    broker.send(encode_request(RequestHeader(ApiKey.DESCRIBE_GROUPS, 5, 5, "me"), many(LARGE_FRAME_BYTES // 12)))
    while broker.timer.size:
        broker.timer.advance()
    assert broker.link.transport.is_aborted
