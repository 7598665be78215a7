from __future__ import annotations

import pytest

from odradek.broker.tools.command.failures import CommandFailed
from odradek.broker.tools.command.socket_loop import spawn
from odradek.broker.tools.data.client.data_client import Unavailable
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support.clusters.data_cluster import DataCluster
from tests.support.virtual_test import virtual_test


@virtual_test
async def test_a_broker_that_is_known_is_asked_when_no_bootstrap_server_answers() -> None:
    cluster = DataCluster()
    cluster.brokers = [1, 2, 3]
    client = cluster.client()
    await client.refresh(())
    cluster.unreachable = {1, 2}
    await client.ask_any(MetadataRequest(), MetadataResponse)
    assert cluster.asked[-1][0] == 3
    cluster.unreachable = {1, 2, 3}
    with pytest.raises(CommandFailed, match="no bootstrap server answers: broker 1 is down; broker 2 is down; broker"):
        await client.refresh(())


@virtual_test
async def test_a_broker_that_is_not_alive() -> None:
    with pytest.raises(ConnectionError, match="broker 7 is not alive"):
        DataCluster().client().link(7, "fetch")


@virtual_test
async def test_each_purpose_has_its_link() -> None:
    client = DataCluster().client()
    await client.refresh(())
    assert client.link(1, "fetch") is client.link(1, "fetch")
    assert client.link(1, "fetch") is not client.link(1, "group")
    client.close()


@virtual_test
async def test_a_topic_is_created_by_asking_for_it() -> None:
    cluster = DataCluster()
    cluster.new_topic_partitions = 3
    assert await cluster.client().await_topic("new", create=True, timeout_ms=1000) == 3


@virtual_test
async def test_a_topic_that_does_not_come() -> None:
    cluster = DataCluster()
    client = cluster.client()
    with pytest.raises(CommandFailed, match="topic new: This server does not host this topic-partition"):
        await client.await_topic("new", create=False, timeout_ms=1000)
    assert len(cluster.asked) == 1
    with pytest.raises(CommandFailed, match="topic new"):
        await client.await_topic("new", create=True, timeout_ms=1000)
    assert len(cluster.asked) == 12, "every 100 ms for a second"


@virtual_test
async def test_a_coordinator_is_asked_for_until_there_is_one() -> None:
    cluster = DataCluster()
    codes = [ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NONE]

    def find(broker_id: int, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
        return FindCoordinatorResponse(coordinators=[Coordinator(key="g", node_id=2, error_code=codes.pop(0))])

    cluster.on(FindCoordinatorRequest, find)
    assert await cluster.client().find_coordinator("g", 0) == 2


@virtual_test
async def test_a_coordinator_that_is_refused_or_never_comes() -> None:
    cluster = DataCluster()
    code = ErrorCode.INVALID_REQUEST
    cluster.on(
        FindCoordinatorRequest,
        lambda broker_id, request: FindCoordinatorResponse(coordinators=[Coordinator(key="g", error_code=code)]),
    )
    with pytest.raises(CommandFailed, match="coordinator of g"):
        await cluster.client().find_coordinator("g", 0)
    code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    with pytest.raises(CommandFailed, match="g has no coordinator"):
        await cluster.client().find_coordinator("g", 0)


@virtual_test
async def test_brokers_that_are_away_for_a_while_are_waited_for() -> None:
    cluster = DataCluster()
    cluster.create("t")
    client = cluster.client()
    await client.refresh(())
    cluster.unreachable = {1, 2}
    spawn(cluster.later(5_000, cluster.unreachable.clear))
    assert await client.find_coordinator("g", 0) == 2
    cluster.unreachable |= {1, 2}
    spawn(cluster.later(5_000, cluster.unreachable.clear))
    assert await client.await_topic("t", create=False, timeout_ms=10_000) == 1
    cluster.unreachable |= {1, 2}
    with pytest.raises(Unavailable):
        await client.await_topic("t", create=False, timeout_ms=1_000)
    with pytest.raises(Unavailable, match="g has no coordinator: no bootstrap server answers"):
        await client.find_coordinator("g", 0)
