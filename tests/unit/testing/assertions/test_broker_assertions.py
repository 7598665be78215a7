from __future__ import annotations

from odradek.protocol.api import ApiKey
from tests.support.in_process.observed_broker import ObservedBroker


def test_requests_are_selected(observed: ObservedBroker) -> None:
    observed.inner.create_topic("u")
    observed.produce("t", b"a", client_id="one")
    observed.produce("u", b"b", client_id="two")
    observed.call(ApiKey.METADATA, 12, topics=[{"name": "t"}], client_id="two")
    assert [request.api for request in observed.requests()] == ["CreateTopics", "Produce", "Produce", "Metadata"]
    assert [request.client_id for request in observed.requests("Produce")] == ["one", "two"]
    assert [request.api for request in observed.requests(client_id="two")] == ["Produce", "Metadata"]
    assert [request.api for request in observed.requests(topic="t")] == ["Produce", "Metadata"]
    assert [request.api for request in observed.requests(where=lambda each: each.version == 12)] == ["Metadata"]
    first = observed.requests("Produce")[0]
    assert [request.client_id for request in observed.requests("Produce", since=first)] == ["two"]
    assert observed.requests(since=observed.last_request_number()) == []
