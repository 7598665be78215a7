from __future__ import annotations

import pytest

from odradek.protocol.api import ApiKey
from odradek.testing.errors import BrokerStopped
from tests.support.in_process.observed_broker import ObservedBroker


def test_requests_of_the_broker_to_itself_are_there_if_wanted(observed: ObservedBroker) -> None:
    observed.inner.create_topic("u")
    assert "LeaderAndIsr" not in {request.api for request in observed.requests()}
    assert "LeaderAndIsr" in {request.api for request in observed.requests(own=True)}


def test_many_requests_come_in_slices(observed: ObservedBroker) -> None:
    for number in range(1_100):
        observed.call(ApiKey.METADATA, 12, topics=[{"name": "t"}], client_id=str(number))
    observed.asked.clear()
    assert [request.client_id for request in observed.requests()] == [str(number) for number in range(1_100)]
    assert observed.asked == ["recorded_requests"] * 3


def test_a_broker_that_stops_ends_a_wait_for_requests(observed: ObservedBroker) -> None:
    observed.meanwhile(lambda: observed.observations.close("stopped"))
    with pytest.raises(BrokerStopped, match="stopped"):
        observed.wait_for_request("Produce")
