from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import cast

import pytest

from odradek.broker.apis.services import Services
from odradek.broker.dispatch import Dispatcher
from odradek.broker.setup.cluster_links import ClusterLinks
from odradek.controller.model.broker_info import Broker, EndPoint, SecurityProtocol
from odradek.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from odradek.protocol.messages.controlled_shutdown import ControlledShutdownResponse
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from tests.support.async_test import async_test
from tests.support.in_process.links import OWN_ID, FakeLinks, OwnAnswers, config

CONTROL_PLANE = {
    "listeners": "PLAINTEXT://:9092,CONTROL://:9093",
    "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROL://localhost:9093",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROL:PLAINTEXT",
    "control.plane.listener.name": "control",
}
PLAINTEXT = SecurityProtocol.PLAINTEXT
BROKER = Broker(2, (EndPoint("h", 9092, "PLAINTEXT", PLAINTEXT), EndPoint("h", 9093, "CONTROL", PLAINTEXT)))


def cluster_links(links: FakeLinks, settings: dict[str, str] | None = None) -> ClusterLinks:
    tasks: set[asyncio.Task[None]] = set()

    def spawn(work: Coroutine[object, object, None]) -> None:
        tasks.add(asyncio.ensure_future(work))

    return ClusterLinks(config(settings), links, links.cache, links.clock, links.timer, spawn, broker_id=OWN_ID)


@pytest.mark.parametrize(("settings", "port"), [({}, 9092), (CONTROL_PLANE, 9093)])
@async_test
async def test_the_controller_talks_to_brokers_over_the_control_plane_if_there_is_one(
    settings: dict[str, str], port: int
) -> None:
    links = FakeLinks()
    links.answer = lambda end_point, request: UpdateMetadataResponse()
    await cluster_links(links, settings).control_transport(BROKER).exchange(UpdateMetadataRequest())
    (link,) = links.made
    assert (link.end_point.port, link.client_id) == (port, "1")


@async_test
async def test_the_protocol_is_the_one_this_broker_is_configured_with() -> None:
    links = FakeLinks()
    cluster_links(links).control_transport(Broker(2, (EndPoint("h", 9092, "PLAINTEXT", SecurityProtocol.SSL),)))
    assert links.made[0].end_point.security_protocol is PLAINTEXT


@async_test
async def test_a_broker_that_has_no_control_plane_is_not_reached_over_another_listener() -> None:
    links = FakeLinks()
    transport = cluster_links(links, CONTROL_PLANE).control_transport(Broker(2, BROKER.end_points[:1]))
    with pytest.raises(OSError, match="broker 2 has no listener CONTROL"):
        await transport.exchange(UpdateMetadataRequest())


@async_test
async def test_the_controller_reaches_its_own_broker_in_process() -> None:
    links = FakeLinks()
    cluster = cluster_links(links)
    own = OwnAnswers(lambda request: UpdateMetadataResponse(error_code=5))
    cluster.serve(cast("Services", None), cast("Dispatcher", own))
    transport = cluster.control_transport(Broker(OWN_ID, BROKER.end_points))
    assert (await transport.exchange(UpdateMetadataRequest())).error_code == 5
    assert not links.made


@pytest.mark.parametrize(("settings", "listener"), [({}, "PLAINTEXT"), (CONTROL_PLANE, "CONTROL")])
@async_test
async def test_the_controller_is_asked_over_the_same_listener_with_a_queue_for_each_purpose(
    settings: dict[str, str], listener: str
) -> None:
    links = FakeLinks()
    links.know(2, {2: 9002}, listener=listener)
    links.answer = lambda end_point, request: AllocateProducerIdsResponse()
    cluster = cluster_links(links, settings)
    for _ in range(2):
        channel = cluster.to_controller()
        await channel.ask(AllocateProducerIdsRequest(), AllocateProducerIdsResponse, timeout_ms=None)
    assert [(link.end_point.listener_name, link.asked[0][2]) for link in links.made] == [(listener, 30_000)] * 2
    cluster.close()
    assert all(link.is_closed for link in links.made)


@async_test
async def test_controlled_shutdown_goes_over_the_inter_broker_listener() -> None:
    links = FakeLinks()
    links.know(2, {2: 9002})
    links.answer = lambda end_point, request: ControlledShutdownResponse()
    await cluster_links(links, CONTROL_PLANE).controlled_shutdown(lambda: 7)
    assert [(link.end_point.listener_name, link.is_closed) for link in links.made] == [("PLAINTEXT", True)]


@pytest.mark.parametrize("settings", [{"controlled.shutdown.enable": "false"}, {"zookeeper.connect": ""}])
@async_test
async def test_a_broker_that_may_not_or_cannot_move_its_leaderships_sends_no_request(settings: dict[str, str]) -> None:
    links = FakeLinks()
    links.know(2, {2: 9002})
    await cluster_links(links, settings).controlled_shutdown(lambda: 7)
    assert not links.made


@async_test
async def test_after_the_close_this_broker_takes_no_request_from_its_controller() -> None:
    links, served = FakeLinks(), []
    linked = cluster_links(links)
    linked.own_link.serve(lambda ctx, request: served.append(request))
    linked.close()
    with pytest.raises(ConnectionAbortedError, match="shutting down"):
        await linked.own_link.exchange(UpdateMetadataRequest(), UpdateMetadataResponse, version=None, timeout_ms=100)
    assert not served
