from __future__ import annotations

import pytest

from odradek.broker.inter_broker.control_transport import LinkTransport, NoListener
from odradek.controller.model.broker_info import EndPoint, SecurityProtocol
from odradek.controller.states.request_batch import ControlRequest
from odradek.protocol.codec.schema import Response
from odradek.protocol.messages.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from odradek.protocol.messages.stop_replica import StopReplicaRequest, StopReplicaResponse
from odradek.protocol.messages.update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from odradek.protocol.metadata_version import LATEST_PRODUCTION
from tests.support.async_test import async_test
from tests.support.in_process.links import FakeLinks

END_POINT = EndPoint("host2", 9002, "PLAINTEXT", SecurityProtocol.PLAINTEXT)


@pytest.mark.parametrize(
    ("request_", "version", "response"),
    [
        (LeaderAndIsrRequest(), 7, LeaderAndIsrResponse()),
        (UpdateMetadataRequest(), 8, UpdateMetadataResponse()),
        (StopReplicaRequest(), 4, StopReplicaResponse()),
    ],
)
@async_test
async def test_control_requests_go_out_unannounced_in_the_versions_of_3_9(
    request_: ControlRequest, version: int, response: Response
) -> None:
    links = FakeLinks()
    links.answer = lambda end_point, request: response
    transport = LinkTransport(links(END_POINT, client_id="1"), 5_000, LATEST_PRODUCTION)
    assert await transport.exchange(request_) is response
    assert links.made[0].asked == [(request_, version, 5_000)]
    transport.close()
    assert links.made[0].is_closed


@async_test
async def test_a_broker_without_the_listener_is_tried_again_like_one_that_is_down() -> None:
    with pytest.raises(OSError, match="broker 2 has no listener CONTROLLER"):
        await NoListener(2, "CONTROLLER").exchange(UpdateMetadataRequest())
