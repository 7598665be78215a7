"""When the memory of a request comes back: when it is handled, not when it is answered."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from odradek.broker.network.frames.memory_pool import MemoryPool
from odradek.broker.network.requests.request import RequestContext
from odradek.broker.network.sockets.close_reason import CloseReason
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.headers import RequestHeader, encode_request
from odradek.protocol.messages.describe_groups import DescribeGroupsRequest
from odradek.protocol.messages.heartbeat import HeartbeatRequest
from odradek.timer.sliced_work import IMMEDIATE_STEPS, Steps
from tests.support.in_process.connections.dispatching import Broker
from tests.support.in_process.connections.network import Link


@pytest.fixture
def broker() -> Iterator[Broker]:
    served = Broker()
    yield served
    served.close()


def memory_of(broker: Broker, request: Request, key: ApiKey, version: int) -> MemoryPool:
    """Send a request that arrives in two reads to a broker with a memory pool."""
    pool = MemoryPool(1_000_000, broker.owner.call_soon)
    broker.owner.memory_pool = pool
    broker.link = Link(broker.owner)
    frame = encode_request(RequestHeader(key, version, 5, "me"), request)
    data = struct.pack(">i", len(frame)) + frame
    broker.link.receive(data[:10])
    assert pool.available == 1_000_000 - len(frame)
    broker.link.receive(data[10:])
    return pool


def test_memory_of_a_request_comes_back_when_its_handler_returns_though_the_answer_waits(broker: Broker) -> None:
    waiting: list[RequestContext] = []
    broker.serve(ApiKey.HEARTBEAT, lambda services, ctx, request: waiting.append(ctx))
    pool = memory_of(broker, HeartbeatRequest(group_id="g" * 10_000), ApiKey.HEARTBEAT, 0)
    assert len(waiting) == 1
    assert pool.available == 1_000_000


def test_memory_of_a_refused_request_comes_back(broker: Broker) -> None:
    def handle(services: object, ctx: RequestContext, request: Request) -> None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)

    broker.serve(ApiKey.HEARTBEAT, handle)
    pool = memory_of(broker, HeartbeatRequest(group_id="g" * 10_000), ApiKey.HEARTBEAT, 0)
    assert pool.available == 1_000_000


@pytest.mark.parametrize("error", [None, KafkaError(ErrorCode.UNKNOWN_MEMBER_ID), ValueError("a bug")])
def test_memory_of_a_request_comes_back_after_its_last_slice(broker: Broker, error: Exception | None) -> None:
    def handle(services: object, ctx: RequestContext, request: Request) -> None:
        def work() -> Steps:
            for _ in range(2 * IMMEDIATE_STEPS):
                yield
            if error is not None:
                raise error

        broker.dispatcher.in_slices(ctx, request, work())

    broker.serve(ApiKey.HEARTBEAT, handle)
    pool = memory_of(broker, HeartbeatRequest(group_id="g" * 10_000), ApiKey.HEARTBEAT, 0)
    assert pool.available < 1_000_000
    while broker.timer.size:
        broker.timer.advance()
    assert pool.available == 1_000_000


def test_memory_of_an_unsupported_version_of_api_versions_comes_back(broker: Broker) -> None:
    pool = broker.owner.memory_pool = MemoryPool(1_000_000, broker.owner.call_soon)
    broker.link = Link(broker.owner)
    frame = struct.pack(">hhih", ApiKey.API_VERSIONS, 99, 5, -1) + bytes(10_000)
    broker.link.receive(struct.pack(">i", len(frame)))
    broker.link.receive(frame)
    assert broker.link.transport.is_reading
    assert pool.available == 1_000_000


def test_memory_of_a_large_frame_that_is_no_request_comes_back(broker: Broker) -> None:
    groups = DescribeGroupsRequest(groups=["g" * 1000] * 100)
    frame = bytearray(encode_request(RequestHeader(ApiKey.DESCRIBE_GROUPS, 0, 5, "me"), groups))
    frame[-1001:-999] = b"\x7f\xff"  # the length of the last name
    pool = broker.owner.memory_pool = MemoryPool(1_000_000, broker.owner.call_soon)
    broker.link = Link(broker.owner)
    broker.link.receive(struct.pack(">i", len(frame)))
    broker.link.receive(bytes(frame))
    while broker.timer.size:
        broker.timer.advance()
    assert broker.closed()[0] is CloseReason.INVALID_REQUEST
    assert pool.available == 1_000_000
