from __future__ import annotations

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.testing import Broker
from odradek.testing.scenarios import coordinator_failover
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build


def test_a_client_sees_the_coordinator_move() -> None:
    with Broker() as broker:
        host, _, port = broker.bootstrap_servers.rpartition(":")
        with RawClient(host, int(port)) as client:

            def join() -> int:
                request = build(ApiKey.HEARTBEAT, group_id="g", member_id="m")
                return int(client.call(request, 4).error_code)  # type: ignore[attr-defined]

            def find() -> int:
                return int(client.call(build(ApiKey.FIND_COORDINATOR, key="g"), 1).error_code)  # type: ignore[attr-defined]

            while find():
                pass  # the topic of the groups is being created
            with coordinator_failover(broker, unavailable=2) as scenario:
                assert join() == ErrorCode.NOT_COORDINATOR
                assert [find(), find(), find()] == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2 + [ErrorCode.NONE]
                assert join() == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
                assert join() == ErrorCode.UNKNOWN_MEMBER_ID
            scenario.assert_called()
            with coordinator_failover(broker, moved=0, unavailable=0) as scenario:
                assert len(scenario.faults) == 1
