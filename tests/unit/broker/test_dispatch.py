from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable, Generator, Iterator
from typing import cast

import pytest

from odradek.broker.dispatch import FEW_VALUES, LARGE_FRAME_BYTES
from odradek.broker.metadata.first_metadata import ANSWERED_FROM_THE_CACHE, FIRST_METADATA_WAIT_MS
from odradek.broker.network.requests.large_requests import LARGE_REQUESTS_BYTES
from odradek.broker.network.requests.request import RequestContext
from odradek.broker.network.sockets.close_reason import CloseReason
from odradek.controller.tree.metadata_tree import SessionExpired
from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.headers import RequestHeader, decode_response, encode_request
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from odradek.timer.sliced_work import IMMEDIATE_STEPS, Steps
from tests.support.in_process.connections.dispatching import Broker, Handle
from tests.support.in_process.connections.network import MemoryRegion


@pytest.fixture
def broker() -> Iterator[Broker]:
    served = Broker()
    yield served
    served.close()


def refusing(error: Exception) -> Handle:
    def handle(services: object, ctx: RequestContext, request: Request) -> None:
        raise error

    return handle


def test_handler_gets_the_decoded_request_and_its_answer_goes_back(broker: Broker) -> None:
    seen: list[tuple[Request, RequestContext]] = []

    def handle(services: object, ctx: RequestContext, request: Request) -> None:
        seen.append((request, ctx))
        ctx.reply(HeartbeatResponse(throttle_time_ms=7))

    broker.serve(ApiKey.HEARTBEAT, handle)
    assert broker.call(HeartbeatRequest(group_id="g"), 4) == HeartbeatResponse(throttle_time_ms=7)
    ((request, ctx),) = seen
    assert request == HeartbeatRequest(group_id="g")
    assert (ctx.header.client_id, ctx.header.api_version, ctx.header.correlation_id) == ("me", 4, 5)
    assert ctx.received_ms == broker.owner.clock.monotonic_ms()


def test_requests_answered_from_the_cache_wait_for_the_first_metadata_and_others_do_not(broker: Broker) -> None:
    broker.first_metadata.is_awaited = True
    broker.serve(ApiKey.METADATA, lambda services, ctx, request: ctx.reply(MetadataResponse(cluster_id="told")))
    broker.serve(ApiKey.HEARTBEAT, lambda services, ctx, request: ctx.reply(HeartbeatResponse()))
    assert broker.call(HeartbeatRequest(), 0) == HeartbeatResponse()
    assert isinstance(broker.call(ApiVersionsRequest(), 3), ApiVersionsResponse)
    broker.send(encode_request(RequestHeader(ApiKey.METADATA, 9, 5, "me"), MetadataRequest()))
    assert not broker.link.wire.data
    broker.first_metadata.arrived(names_partitions=True)
    assert broker.answer(ApiKey.METADATA, 9) == MetadataResponse(cluster_id="told")


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_client_that_asks_for_brokers_is_closed_if_none_becomes_known(broker: Broker, is_closed: bool) -> None:
    """librdkafka does not ask again after an answer without brokers."""
    broker.first_metadata.is_awaited = True
    request = MetadataRequest() if is_closed else FindCoordinatorRequest()
    served = ApiKey(request.API_KEY)
    broker.serve(ApiKey.METADATA, lambda services, ctx, request: ctx.reply(MetadataResponse()))
    broker.serve(ApiKey.FIND_COORDINATOR, lambda services, ctx, request: ctx.reply(FindCoordinatorResponse()))
    broker.send(encode_request(RequestHeader(served, 0, 5, "me"), request))
    broker.owner.clock.advance(FIRST_METADATA_WAIT_MS)
    broker.first_metadata_timer.advance()
    assert broker.link.transport.is_aborted == is_closed
    assert bool(broker.link.wire.data) != is_closed


def test_nothing_that_brokers_ask_of_each_other_waits_for_the_first_metadata() -> None:
    """Else the controller waits for a broker that waits for the controller."""
    between_brokers = {
        ApiKey.FETCH,
        ApiKey.LIST_OFFSETS,
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.WRITE_TXN_MARKERS,
        ApiKey.ADD_PARTITIONS_TO_TXN,
        ApiKey.ALTER_PARTITION,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.API_VERSIONS,
    }
    assert not between_brokers & ANSWERED_FROM_THE_CACHE


def test_refusal_becomes_the_error_response(broker: Broker) -> None:
    broker.serve(ApiKey.HEARTBEAT, refusing(KafkaError(ErrorCode.UNKNOWN_MEMBER_ID)))
    assert broker.call(HeartbeatRequest(), 0) == HeartbeatResponse(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
    assert not broker.link.transport.is_aborted


def test_module_can_have_an_error_response_of_its_own(broker: Broker) -> None:
    def error_response(
        request: Request, version: int, code: ErrorCode, message: str | None
    ) -> Generator[None, None, Response]:
        yield
        return HeartbeatResponse(error_code=code, throttle_time_ms=version)

    broker.serve(ApiKey.HEARTBEAT, refusing(KafkaError(ErrorCode.NOT_COORDINATOR)), error_response=error_response)
    assert broker.call(HeartbeatRequest(), 3) == HeartbeatResponse(
        error_code=ErrorCode.NOT_COORDINATOR, throttle_time_ms=3
    )


def nothing() -> Generator[None, None, None]:
    yield


def test_refusal_of_an_api_without_answer_closes_the_connection(broker: Broker) -> None:
    broker.serve(
        ApiKey.PRODUCE,
        refusing(KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)),
        error_response=lambda request, version, code, message: nothing(),
    )
    broker.send(encode_request(RequestHeader(ApiKey.PRODUCE, 3, 5, "me"), ProduceRequest(acks=0)))
    assert broker.closed()[0] is CloseReason.REQUEST_REFUSED


def test_a_failed_operation_on_the_metadata_tree_is_logged_without_a_traceback(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    broker.serve(ApiKey.HEARTBEAT, refusing(SessionExpired("", "the session with ZooKeeper expired")))
    assert broker.call(HeartbeatRequest(), 0) == HeartbeatResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    (record,) = caplog.records
    assert "the session with ZooKeeper expired" in record.getMessage()
    assert record.exc_info is None


def test_bug_is_logged_with_its_traceback_and_answered(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    broker.serve(ApiKey.HEARTBEAT, refusing(ZeroDivisionError("a bug")))
    assert broker.call(HeartbeatRequest(), 0) == HeartbeatResponse(error_code=ErrorCode.UNKNOWN_SERVER_ERROR)
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.exc_info is not None
    assert "Heartbeat" in record.getMessage()


def test_bug_after_the_answer_is_logged_and_not_answered_twice(
    broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    def handle(services: object, ctx: RequestContext, request: Request) -> None:
        ctx.reply(HeartbeatResponse())
        raise ZeroDivisionError("a bug")

    broker.serve(ApiKey.HEARTBEAT, handle)
    assert broker.call(HeartbeatRequest(), 0) == HeartbeatResponse()
    assert "a bug" in caplog.text


def test_exception_of_a_spawned_task_is_answered(broker: Broker) -> None:
    async def work() -> None:
        await asyncio.sleep(0)
        raise KafkaError(ErrorCode.NOT_CONTROLLER)

    def handle(services: object, ctx: RequestContext, request: Request) -> None:
        broker.dispatcher.spawn(ctx, request, work())

    async def scenario() -> None:
        broker.serve(ApiKey.HEARTBEAT, handle)
        broker.send(encode_request(RequestHeader(ApiKey.HEARTBEAT, 0, 5, "me"), HeartbeatRequest()))
        assert not broker.link.wire.data
        for _ in range(4):
            await asyncio.sleep(0)

    asyncio.run(scenario())
    assert broker.answer(ApiKey.HEARTBEAT, 0) == HeartbeatResponse(error_code=ErrorCode.NOT_CONTROLLER)


@pytest.mark.parametrize(
    ("payload", "detail"),
    [
        (b"", "not a request header"),
        (struct.pack(">hhih", 999, 0, 1, -1), "Unknown API key 999"),
        (struct.pack(">hhih", ApiKey.METADATA, 99, 1, -1) + b"\0", "Metadata version 99 is not supported"),
        (struct.pack(">hhih", ApiKey.FETCH, 4, 1, -1) + bytes(99), "disabled API Fetch"),
        (struct.pack(">hhih", ApiKey.HEARTBEAT, 0, 1, -1) + b"\x7f\xff", "HeartbeatRequest"),
    ],
)
def test_request_that_cannot_be_served_closes_the_connection(broker: Broker, payload: bytes, detail: str) -> None:
    broker.serve(ApiKey.HEARTBEAT, refusing(AssertionError("not reached")))
    broker.send(payload)
    reason, found = broker.closed()
    assert reason is CloseReason.INVALID_REQUEST
    assert detail in found


@pytest.mark.parametrize("version", [5, 99, -1])
def test_api_versions_in_an_unknown_version_is_answered_in_version_0(broker: Broker, version: int) -> None:
    payload = struct.pack(">hhih", ApiKey.API_VERSIONS, version, 5, 2) + b"me" + b"\0" * (version >= 3)
    broker.send(payload)
    response = broker.answer(ApiKey.API_VERSIONS, 0)
    assert isinstance(response, ApiVersionsResponse)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(key.api_key, key.min_version, key.max_version) for key in response.api_keys] == [(18, 0, 4)]
    assert not broker.link.transport.is_aborted
    request = ApiVersionsRequest(client_software_name="a", client_software_version="1")
    assert broker.call(request, 4).error_code == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("release", "version", "named"),
    [("2.8", 4, [(18, 0, 3)]), ("2.4", 4, [(18, 0, 3)]), ("2.3", 3, []), ("0.10.2", 1, [])],
)
def test_an_older_release_refuses_later_versions_of_api_versions_as_it_did(
    release: str, version: int, named: list[tuple[int, int, int]]
) -> None:
    """KIP-511: only releases from 2.4 on name their range."""
    broker = Broker(odradek_as_version=release)
    broker.send(struct.pack(">hhih", ApiKey.API_VERSIONS, version, 5, 2) + b"me" + b"\0" * (version >= 3))
    response = broker.answer(ApiKey.API_VERSIONS, 0)
    assert isinstance(response, ApiVersionsResponse)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(key.api_key, key.min_version, key.max_version) for key in response.api_keys] == named
    answer = broker.call(ApiVersionsRequest(client_software_name="a", client_software_version="1"), version - 1)
    assert isinstance(answer, ApiVersionsResponse)
    assert answer.error_code == ErrorCode.NONE
    broker.close()


@pytest.mark.parametrize(
    ("key", "version", "detail"),
    [
        (ApiKey.METADATA, 3, "Metadata version 3 is not supported"),
        (ApiKey.CONTROLLED_SHUTDOWN, 0, "ControlledShutdown version 0 is not supported"),
        (ApiKey.DESCRIBE_CONFIGS, 0, "Unknown API key 32"),
    ],
)
def test_what_an_older_release_did_not_serve_closes_the_connection(key: ApiKey, version: int, detail: str) -> None:
    broker = Broker(odradek_as_version="0.10.2")
    broker.serve(key, refusing(AssertionError("not reached")))
    broker.send(struct.pack(">hhih", key, version, 5, -1) + bytes(9))
    reason, found = broker.closed()
    assert reason is CloseReason.INVALID_REQUEST
    assert detail in found
    broker.close()


class Gate:
    """Takes SaslAuthenticate. Implements `connection_owner.Authentication`."""

    def __init__(self) -> None:
        self.taken: list[bytes] = []

    def takes(self, request: memoryview, received_ms: int, /) -> bool:
        if request[1] == ApiKey.SASL_AUTHENTICATE:
            self.taken.append(bytes(request))
            return True
        return False

    def refuses_frame(self) -> bool:
        return False


def test_a_frame_that_authentication_takes_is_not_dispatched(broker: Broker) -> None:
    gate = Gate()
    broker.serve(ApiKey.SASL_AUTHENTICATE, refusing(AssertionError("not reached")))
    broker.link.connection.authentication = gate
    broker.send(encode_request(RequestHeader(ApiKey.SASL_AUTHENTICATE, 1, 5, "me"), SaslAuthenticateRequest()))
    assert len(gate.taken) == 1
    assert broker.call(ApiVersionsRequest(), 0).error_code == 0  # type: ignore[attr-defined]


@pytest.mark.parametrize("key", API)
def test_no_api_is_dispatched_before_authentication(broker: Broker, key: ApiKey) -> None:
    """The authentication has let it through by mistake."""
    broker.serve(ApiKey(key), refusing(AssertionError("not reached")))
    broker.link.connection.is_authenticated = False
    version = API[key].max_version
    flexible = API[key].request_header_version(version) == 2
    broker.send(struct.pack(">hhih", key, version, 1, 2) + b"me" + b"\0" * flexible + bytes(50))
    assert broker.closed()[0] is CloseReason.NOT_AUTHENTICATED


def many(count: int) -> DescribeGroupsRequest:
    return DescribeGroupsRequest(groups=[f"group-{number:06d}" for number in range(count)])


def described(count: int) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=[DescribedGroup(group_id=f"group-{number:06d}") for number in range(count)])


def test_a_large_request_is_decoded_and_answered_in_slices_and_later_ones_of_its_connection_wait(
    broker: Broker,
) -> None:
    count = LARGE_FRAME_BYTES // 12
    asked: list[int] = []

    def handle(services: object, ctx: RequestContext, request: Request) -> None:
        assert isinstance(request, DescribeGroupsRequest)
        asked.append(len(request.groups))
        ctx.reply(described(len(request.groups)))

    broker.serve(ApiKey.DESCRIBE_GROUPS, handle)
    broker.send(encode_request(RequestHeader(ApiKey.DESCRIBE_GROUPS, 5, 5, "me"), many(count)))
    broker.send(encode_request(RequestHeader(ApiKey.DESCRIBE_GROUPS, 5, 6, "me"), many(1)))
    assert (asked, bytes(broker.link.wire.data)) == ([], b"")
    broker.timer.advance()
    assert asked[0] == count
    while broker.timer.size:
        broker.timer.advance()
    assert asked == [count]
    broker.owner.run_soon()
    assert asked == [count, 1]
    data = bytes(broker.link.wire.data)
    (size,) = struct.unpack_from(">i", data)
    assert decode_response(ApiKey.DESCRIBE_GROUPS, 5, data[4 : 4 + size]) == (5, described(count))
    assert decode_response(ApiKey.DESCRIBE_GROUPS, 5, data[8 + size :]) == (6, described(1))


@pytest.mark.parametrize(("partitions", "is_at_once"), [(6, True), (FEW_VALUES // 3, False)])
def test_a_large_produce_of_some_batches_is_decoded_at_once(broker: Broker, partitions: int, is_at_once: bool) -> None:
    asked: list[tuple[int, bool]] = []

    def handle(services: object, ctx: RequestContext, request: Request) -> None:
        assert isinstance(request, ProduceRequest)
        asked.append((len(request.topic_data[0].partition_data), ctx.slices is None))
        ctx.reply(None)

    broker.serve(ApiKey.PRODUCE, handle)
    records = bytes(2 * LARGE_FRAME_BYTES // partitions)
    parts = [PartitionProduceData(index=index, records=records) for index in range(partitions)]
    request = ProduceRequest(acks=0, topic_data=[TopicProduceData(name="t", partition_data=parts)])
    broker.send(encode_request(RequestHeader(ApiKey.PRODUCE, 11, 5, "me"), request))
    assert asked == [(partitions, is_at_once)]


def test_a_large_request_gives_its_place_to_the_next(broker: Broker) -> None:
    """When its handler is done, also in slices: else no other would be decoded any more."""
    asked: list[int] = []

    def handle(services: object, ctx: RequestContext, request: Request) -> None:
        def work() -> Steps:
            yield None
            ctx.reply(described(1))

        asked.append(ctx.header.correlation_id)
        broker.dispatcher.in_slices(ctx, request, work())

    broker.serve(ApiKey.DESCRIBE_GROUPS, handle)
    numbers = list(range(2 * LARGE_REQUESTS_BYTES // LARGE_FRAME_BYTES))
    for number in numbers:
        header = RequestHeader(ApiKey.DESCRIBE_GROUPS, 5, number, "me")
        broker.send(encode_request(header, many(LARGE_FRAME_BYTES // 12)))
        while broker.timer.size:
            broker.timer.advance()
    assert asked == numbers


def test_a_large_frame_that_is_no_request_closes_the_connection(broker: Broker) -> None:
    broker.serve(ApiKey.DESCRIBE_GROUPS, lambda services, ctx, request: None)
    broker.send(encode_request(RequestHeader(ApiKey.DESCRIBE_GROUPS, 5, 5, "me"), many(10_000))[:-1000])
    while broker.timer.size:
        broker.timer.advance()
    reason, _ = broker.closed()
    assert reason is CloseReason.INVALID_REQUEST


def in_steps(broker: Broker, count: int, reply: Callable[[RequestContext], None]) -> Handle:
    """A handler of so many steps, and an answer."""

    def handle(services: object, ctx: RequestContext, request: Request) -> None:
        def work() -> Steps:
            yield from (None for _ in range(count))
            reply(ctx)

        broker.dispatcher.in_slices(ctx, request, work())

    return handle


def test_little_work_in_steps_is_answered_at_once(broker: Broker) -> None:
    broker.serve(ApiKey.HEARTBEAT, in_steps(broker, IMMEDIATE_STEPS - 1, lambda ctx: ctx.reply(HeartbeatResponse())))
    assert broker.call(HeartbeatRequest(), 4) == HeartbeatResponse()


def test_much_work_in_steps_is_answered_later(broker: Broker) -> None:
    broker.serve(ApiKey.HEARTBEAT, in_steps(broker, IMMEDIATE_STEPS, lambda ctx: ctx.reply(HeartbeatResponse())))
    broker.send(encode_request(RequestHeader(ApiKey.HEARTBEAT, 4, 5, "me"), HeartbeatRequest()))
    assert bytes(broker.link.wire.data) == b""
    broker.timer.advance()
    assert broker.answer(ApiKey.HEARTBEAT, 4) == HeartbeatResponse()


@pytest.mark.parametrize("count", [0, 2 * IMMEDIATE_STEPS])
def test_an_error_in_a_step_is_an_answer(broker: Broker, count: int) -> None:
    def fail(ctx: RequestContext) -> None:
        raise KafkaError(ErrorCode.NOT_COORDINATOR)

    broker.serve(ApiKey.HEARTBEAT, in_steps(broker, count, fail))
    broker.send(encode_request(RequestHeader(ApiKey.HEARTBEAT, 4, 5, "me"), HeartbeatRequest()))
    broker.timer.advance()
    answer = broker.answer(ApiKey.HEARTBEAT, 4)
    assert isinstance(answer, HeartbeatResponse)
    assert answer.error_code == ErrorCode.NOT_COORDINATOR


def test_work_goes_on_though_its_client_has_gone(broker: Broker) -> None:
    done: list[None] = []

    def reply(ctx: RequestContext) -> None:
        done.append(None)
        ctx.reply(HeartbeatResponse())

    broker.serve(ApiKey.HEARTBEAT, in_steps(broker, 2 * IMMEDIATE_STEPS, reply))
    broker.send(encode_request(RequestHeader(ApiKey.HEARTBEAT, 4, 5, "me"), HeartbeatRequest()))
    broker.link.connection.connection_lost(None)
    broker.timer.advance()
    assert done == [None]


def test_an_append_in_slices_lets_the_next_one_begin_before_it_is_answered(broker: Broker) -> None:
    begun: list[int] = []

    def handle(services: object, ctx: RequestContext, request: Request) -> None:
        def work() -> Steps:
            begun.append(ctx.header.correlation_id)
            yield from (None for _ in range(2 * IMMEDIATE_STEPS))
            ctx.may_pipeline = True

        broker.dispatcher.in_slices(ctx, request, work())

    broker.serve(ApiKey.PRODUCE, handle)
    for number in (5, 6):
        broker.send(encode_request(RequestHeader(ApiKey.PRODUCE, 9, number, "me"), ProduceRequest()))
    assert begun == [5]
    broker.timer.advance()
    broker.owner.run_soon()
    assert begun == [5, 6]


def test_the_regions_of_an_answer_in_slices_are_retained_in_steps_and_let_go(broker: Broker) -> None:
    class SlowRegion(MemoryRegion):
        def retain(self) -> None:
            super().retain()
            broker.owner.clock.advance(1)

    regions = [SlowRegion(b"records%d" % number) for number in range(2 * IMMEDIATE_STEPS)]
    parts = [PartitionData(partition_index=0, records=cast("bytes", region)) for region in regions]
    response = FetchResponse(responses=[FetchableTopicResponse(topic="t", partitions=parts)])
    broker.serve(ApiKey.FETCH, in_steps(broker, IMMEDIATE_STEPS, lambda ctx: ctx.reply(response)))
    broker.send(encode_request(RequestHeader(ApiKey.FETCH, 12, 5, "me"), FetchRequest()))
    pinned = []
    while broker.timer.size:
        broker.timer.advance()
        pinned.append(sum(region.pins for region in regions))
        broker.owner.run_soon()
    assert any(0 < count < len(regions) for count in pinned), pinned
    assert all(region.was_retained and not region.pins for region in regions)
    answer = broker.answer(ApiKey.FETCH, 12)
    assert isinstance(answer, FetchResponse)
    assert len(answer.responses[0].partitions) == len(regions)


def test_work_in_slices_ends_when_the_broker_stops(broker: Broker) -> None:
    broker.serve(ApiKey.HEARTBEAT, in_steps(broker, 2 * IMMEDIATE_STEPS, lambda ctx: ctx.reply(HeartbeatResponse())))
    broker.send(encode_request(RequestHeader(ApiKey.HEARTBEAT, 4, 5, "me"), HeartbeatRequest()))
    broker.slices.close()
    broker.timer.advance()
    assert bytes(broker.link.wire.data) == b""
