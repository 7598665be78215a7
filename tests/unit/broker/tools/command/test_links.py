from __future__ import annotations

from odradek.broker.inter_broker.broker_connection import BrokerConnection
from odradek.broker.tools.command.links import links_of
from odradek.controller.model.broker_info import EndPoint, SecurityProtocol
from tests.support.async_test import async_test
from tests.support.clusters.data_cluster import CONFIG


@async_test
async def test_links_and_the_timer_that_drives_them() -> None:
    with links_of(CONFIG) as links:
        link = links.make_link(EndPoint("host", 9092, "", SecurityProtocol.PLAINTEXT), client_id="me")
        assert isinstance(link, BrokerConnection)
        assert str(link) == "://host:9092"
        assert links.settings.connection_setup_timeout_ms == CONFIG.connection_setup_timeout_ms
        assert links.timer.on_earlier_deadline is not None
        link.close()
    assert links.timer.on_earlier_deadline is None
