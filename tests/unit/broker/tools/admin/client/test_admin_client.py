from __future__ import annotations

import pytest

from odradek.broker.tools.admin.client.admin_client import AdminClient
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_topics import CreatableTopicResult, CreateTopicsRequest, CreateTopicsResponse
from odradek.protocol.messages.metadata import MetadataRequest
from tests.support.clusters.admin_cluster import AdminCluster, outcome


async def ask_metadata(client: AdminClient) -> None:
    await client.metadata()


def test_any_bootstrap_server_will_do(cluster: AdminCluster) -> None:
    cluster.unreachable = {1}
    outcome(lambda client: client.metadata(None))
    assert cluster.requests(MetadataRequest) == [(3, MetadataRequest(topics=None))]


def test_without_any_the_command_fails_in_a_line(cluster: AdminCluster, capsys: pytest.CaptureFixture[str]) -> None:
    cluster.unreachable = {1, 3}

    outcome(ask_metadata, status=1)
    assert capsys.readouterr().err == ("odradek: no bootstrap server answers: broker 1 is down; broker 3 is down\n")


def test_the_controller_is_asked_again_when_it_was_another(cluster: AdminCluster) -> None:
    def create(broker_id: int, request: CreateTopicsRequest) -> Response:
        if broker_id == 2:
            cluster.controller_id = 3
            return CreateTopicsResponse(topics=[CreatableTopicResult(name="t", error_code=ErrorCode.NOT_CONTROLLER)])
        return CreateTopicsResponse(topics=[CreatableTopicResult(name="t")])

    cluster.on(CreateTopicsRequest, create)
    (answer,) = outcome(lambda client: client.ask_controller(CreateTopicsRequest(), CreateTopicsResponse))
    assert answer == CreateTopicsResponse(topics=[CreatableTopicResult(name="t")])
    assert [broker_id for broker_id, _ in cluster.requests(CreateTopicsRequest)] == [2, 3]


def test_a_controller_that_does_not_answer_is_looked_for_again(cluster: AdminCluster) -> None:
    def metadata_then_controller(broker_id: int, request: Request) -> Response:
        cluster.controller_id, cluster.unreachable = 1, set()
        return CreateTopicsResponse()

    cluster.on(CreateTopicsRequest, metadata_then_controller)
    cluster.unreachable = {2}
    seen: list[int] = []

    def metadata(broker_id: int, request: Request) -> Response:
        seen.append(broker_id)
        if len(seen) > 2:
            cluster.controller_id = 3
        return cluster._metadata(broker_id, request)

    cluster.on(MetadataRequest, metadata)
    outcome(lambda client: client.ask_controller(CreateTopicsRequest(), CreateTopicsResponse))
    assert [broker_id for broker_id, _ in cluster.requests(CreateTopicsRequest)] == [3]


def test_a_broker_that_is_not_there_is_an_error(cluster: AdminCluster, capsys: pytest.CaptureFixture[str]) -> None:
    outcome(lambda client: client.ask_broker(9, CreateTopicsRequest(), CreateTopicsResponse), status=1)
    assert capsys.readouterr().err == "odradek: broker 9 is not alive\n"


@pytest.mark.parametrize("text", ["", "a", "a:", ":1", "a:x", "a:65536", ","])
def test_invalid_address_is_refused(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    outcome(ask_metadata, status=1, bootstrap=text)
    assert "is not host:port" in capsys.readouterr().err
