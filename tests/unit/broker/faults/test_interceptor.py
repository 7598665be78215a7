from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from odradek.broker.faults import interceptor as module
from odradek.broker.faults.record import FaultRecord
from odradek.protocol.api import ApiKey
from odradek.protocol.headers import RequestHeader, encode_request
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from tests.support.in_process.connections.faulty_dispatching import Faulty
from tests.support.in_process.connections.network import Link


@pytest.fixture
def broker() -> Iterator[Faulty]:
    served = Faulty()
    yield served
    served.close()


def test_an_event_says_which_request_met_which_rule(broker: Faulty) -> None:
    broker.faults.add({"action": "error", "code": 25, "name": "kicked", "nth": 2})
    broker.ask(11)
    broker.ask(12)
    (event,) = broker.faults.record().events
    assert (event.number, event.rule, event.api, event.version) == (1, "kicked", "Heartbeat", 4)
    assert (event.client_id, event.call, event.correlation_id, event.connection) == ("me", 2, 12, 1)
    assert event.fault == {"action": "error", "code": "UNKNOWN_MEMBER_ID"}


def test_connections_are_numbered_as_they_come(broker: Faulty) -> None:
    broker.faults.add({"action": "error", "code": 25, "connection": 2})
    broker.ask()
    second = Link(broker.owner)
    second.connection.client_port = 50_001
    broker.link = second
    broker.ask()
    assert [event.connection for event in broker.faults.record().events] == [2]


def test_what_clients_choose_takes_a_bounded_number_of_places(broker: Faulty, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_CLIENTS", 2)
    monkeypatch.setattr(module, "MAX_EVENTS", 3)
    broker.faults.add({"action": "error", "code": 25})
    for number in range(5):
        broker.link = Link(broker.owner)
        broker.link.connection.client_port = 50_000 + number
        broker.ask(number, client_id=f"client-{number}")
    record = broker.faults.record()
    assert [(event.call, event.connection) for event in record.events] == [(1, 1), (1, 2), (0, 3)]
    assert record.is_cut_off
    assert len(broker.faults._interceptor._connections) == 2


def test_long_names_of_clients_are_cut_and_can_still_be_replayed(broker: Faulty) -> None:
    broker.faults.add({"action": "error", "code": 25})
    name = "x" * 30_000
    broker.ask(client_id=name)
    record = broker.faults.record()
    assert record.events[0].client_id == name[: module.MAX_NAME]
    broker.faults.clear()
    broker.faults.replay(record)
    broker.ask(client_id=name)
    assert broker.faults.unplayed == []


def ask_metadata(broker: Faulty, *names: str) -> None:
    header = RequestHeader(ApiKey.METADATA, 12, 5, "me")
    topics = [MetadataRequestTopic(name=name) for name in names]
    broker.send(encode_request(header, MetadataRequest(topics=topics)))


def test_requests_for_metadata_are_counted_by_their_topics(broker: Faulty) -> None:
    """A client asks for the brokers before or after it knows a topic: that must not change what is replayed."""
    broker.serve(ApiKey.METADATA, lambda services, ctx, request: ctx.reply(MetadataResponse()))
    broker.faults.add({"action": "error", "code": 25, "api": "Metadata", "topic": "t", "nth": 2})
    ask_metadata(broker)
    ask_metadata(broker, "t")
    ask_metadata(broker, "t")
    record = broker.faults.record()
    assert [(event.call, event.topics) for event in record.events] == [(2, ("t",))]
    broker.faults.clear()
    broker.faults.replay(record)
    ask_metadata(broker, "t")
    assert broker.faults.unplayed != []
    ask_metadata(broker, "t")
    assert broker.faults.unplayed == []
    assert broker.faults.record().sequence() == record.sequence()


def test_a_replay_stops_at_the_first_difference(broker: Faulty) -> None:
    broker.faults.add({"action": "error", "code": 25, "times": 2})
    broker.ask()
    broker.ask()
    record = broker.faults.record()
    other = FaultRecord(events=(replace(record.events[0], version=3), record.events[1]))
    broker.faults.replay(other)
    broker.ask()
    broker.ask()
    assert broker.faults.difference is not None
    assert "request 1 of Heartbeat from 'me' was version 3" in broker.faults.difference
    assert broker.faults.record().events == ()
