from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.controller.states.request_batch import ControlRequest
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from odradek.protocol.messages.produce import ProduceRequest, ProduceResponse
from odradek.protocol.messages.stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaResponse,
    StopReplicaTopicState,
)
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from tests.support.async_test import async_test
from tests.support.in_process.in_process_broker import InProcessBroker, in_process_broker
from tests.support.in_process.links import FakeLinks, OwnAnswers

CONTROL: tuple[tuple[type[ControlRequest], type[Response]], ...] = (
    (LeaderAndIsrRequest, LeaderAndIsrResponse),
    (StopReplicaRequest, StopReplicaResponse),
    (UpdateMetadataRequest, UpdateMetadataResponse),
)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[InProcessBroker]:
    with in_process_broker(tmp_path) as broker:
        yield broker


def ask(broker: InProcessBroker, request: Request, response_type: type[Response]) -> Response:
    own_link = broker.links.own_link
    return broker.run(own_link.exchange(request, response_type, version=None, timeout_ms=1_000))


@pytest.mark.parametrize(("request_type", "response_type"), CONTROL)
@pytest.mark.parametrize(("controller_epoch", "error"), [(9, ErrorCode.NONE), (0, ErrorCode.STALE_CONTROLLER_EPOCH)])
def test_request_is_answered_as_over_the_wire(
    broker: InProcessBroker,
    request_type: type[ControlRequest],
    response_type: type[Response],
    controller_epoch: int,
    error: ErrorCode,
) -> None:
    request = request_type(controller_id=0, controller_epoch=controller_epoch)
    assert ask(broker, request, response_type).error_code == error  # type: ignore[attr-defined]


@pytest.mark.parametrize(("request_type", "response_type"), CONTROL)
def test_request_for_an_earlier_life_is_refused(
    broker: InProcessBroker, request_type: type[ControlRequest], response_type: type[Response]
) -> None:
    epoch = broker.services.controller.broker_epoch
    request = request_type(controller_id=0, controller_epoch=9, broker_epoch=epoch - 1)
    assert ask(broker, request, response_type).error_code == ErrorCode.STALE_BROKER_EPOCH  # type: ignore[attr-defined]


def test_a_refusal_of_a_handler_is_an_error_response(broker: InProcessBroker) -> None:
    request = AllocateProducerIdsRequest(broker_id=99, broker_epoch=1)
    answer = ask(broker, request, AllocateProducerIdsResponse)
    assert answer == AllocateProducerIdsResponse(error_code=ErrorCode.BROKER_ID_NOT_REGISTERED)


def test_a_handler_that_fails_answers_for_every_partition(
    broker: InProcessBroker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr("odradek.broker.apis.cluster.stop_replica.is_stale", broken)
    topic = StopReplicaTopicState(topic_name="t", partition_states=[StopReplicaPartitionState()])
    response = ask(broker, StopReplicaRequest(topic_states=[topic]), StopReplicaResponse)
    assert isinstance(response, StopReplicaResponse)
    assert [(e.topic_name, e.error_code) for e in response.partition_errors] == [("t", ErrorCode.UNKNOWN_SERVER_ERROR)]
    assert "a bug" in caplog.text


@async_test
async def test_a_handler_that_would_hang_up_is_a_broken_connection() -> None:
    links = FakeLinks()
    links.own_link.serve(lambda ctx, request: ctx.close_connection())
    with pytest.raises(ConnectionAbortedError, match="request refused"):
        await links.own_link.exchange(ProduceRequest(acks=0), ProduceResponse, version=None, timeout_ms=100)


@async_test
async def test_a_late_answer_is_a_timeout_and_is_ignored() -> None:
    links = FakeLinks()
    own = OwnAnswers(lambda request: None)
    links.own_link.serve(own.serve)
    asked = asyncio.ensure_future(
        links.own_link.exchange(AllocateProducerIdsRequest(), AllocateProducerIdsResponse, version=None, timeout_ms=100)
    )
    await links.advance(101)
    with pytest.raises(TimeoutError):
        await asked


@async_test
async def test_the_handler_gets_the_very_object_in_the_version_that_was_named_or_the_highest() -> None:
    links, received = FakeLinks(), []

    def answer(request: Request) -> Response:
        received.append(request)
        return UpdateMetadataResponse(error_code=3)

    own = OwnAnswers(answer)
    links.own_link.serve(own.serve)
    request = UpdateMetadataRequest()
    for version in (7, None):
        response = await links.own_link.exchange(request, UpdateMetadataResponse, version=version, timeout_ms=100)
        assert response.error_code == 3
    assert all(one is request for one in received)
    assert own.versions == [7, 8]
