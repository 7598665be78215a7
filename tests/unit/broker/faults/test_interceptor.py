from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from odradek.broker.faults import interceptor as module
from odradek.broker.faults.record import FaultRecord
from odradek.broker.network.requests.request import RequestContext
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
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


def ask_for_all(broker: Faulty) -> None:
    broker.send(encode_request(RequestHeader(ApiKey.METADATA, 12, 5, "me"), MetadataRequest(topics=None)))


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


def test_metadata_for_all_topics_counts_apart_from_metadata_for_none(broker: Faulty) -> None:
    broker.serve(ApiKey.METADATA, lambda services, ctx, request: ctx.reply(MetadataResponse()))
    broker.faults.add({"action": "error", "code": 25, "api": "Metadata", "at": "entry"})
    ask_metadata(broker)
    ask_for_all(broker)
    record = FaultRecord.of_json(broker.faults.record().to_json())
    assert [(event.call, event.topics, event.all_topics) for event in record.events] == [(1, (), True)]
    broker.faults.clear()
    broker.faults.replay(record)
    ask_metadata(broker)
    ask_metadata(broker)
    assert broker.faults.unplayed != []
    ask_for_all(broker)
    assert broker.faults.unplayed == []
    assert broker.faults.record().sequence() == record.sequence()


class SlowMetadata:
    """Answers Metadata; the first one after `begin` perhaps not before the end of the test."""

    def __init__(self, broker: Faulty) -> None:
        self._holds_next = False
        self._held: list[RequestContext] = []
        broker.serve(ApiKey.METADATA, self._handle)

    def begin(self, *, is_slow: bool) -> None:
        self._holds_next = is_slow

    def _handle(self, services: object, ctx: RequestContext, request: Request) -> None:
        if self._holds_next:
            self._holds_next = False
            self._held.append(ctx)
        else:
            ctx.reply(MetadataResponse())


def ask_until_stale(broker: Faulty) -> str:
    """What a client does: when its time for an answer is over it asks on another connection. Which one was changed."""
    for name in ("first", "second", "third"):
        broker.link = Link(broker.owner)
        ask_metadata(broker, "t")
        if broker.faults.record().events:
            return name
    return "none"


@pytest.mark.parametrize("was_slow", [False, True])
@pytest.mark.parametrize("is_slow", [False, True])
def test_stale_metadata_is_replayed_when_an_answer_takes_another_time(
    broker: Faulty, was_slow: bool, is_slow: bool
) -> None:
    """How often a client asks before it has an answer is chance: the fault is for what it asks after that."""
    metadata = SlowMetadata(broker)
    metadata.begin(is_slow=was_slow)
    broker.faults.add({"action": "stale_metadata", "times": 1})
    assert ask_until_stale(broker) == ("third" if was_slow else "second")
    record = FaultRecord.of_json(broker.faults.record().to_json())
    broker.faults.clear()
    broker.faults.replay(record)
    metadata.begin(is_slow=is_slow)
    assert ask_until_stale(broker) == ("third" if is_slow else "second")
    assert (broker.faults.difference, broker.faults.unplayed) == (None, [])
    assert broker.faults.record().sequence() == record.sequence()


def test_stale_metadata_without_an_answer_to_repeat_has_not_come(broker: Faulty) -> None:
    metadata = SlowMetadata(broker)
    broker.faults.add({"action": "stale_metadata", "times": 1})
    ask_until_stale(broker)
    record = broker.faults.record()
    broker.faults.clear()
    broker.faults.replay(record)
    metadata.begin(is_slow=True)
    for _ in range(2):
        broker.link = Link(broker.owner)
        ask_metadata(broker, "t")
    assert broker.faults.record().events == ()
    assert broker.faults.unplayed == list(record.events)


def test_stale_metadata_of_a_rule_that_came_later_is_replayed_for_the_same_request(broker: Faulty) -> None:
    """Answers count from the beginning of the record, also while no rule needed them."""
    broker.faults.add({"action": "error", "code": 25, "api": "Heartbeat"})
    SlowMetadata(broker)
    ask_metadata(broker, "t")
    broker.faults.add({"action": "stale_metadata", "times": 1})
    ask_metadata(broker, "t")
    assert broker.faults.record().events == ()
    ask_metadata(broker, "t")
    record = broker.faults.record()
    assert [event.call for event in record.events] == [3]
    broker.faults.clear()
    broker.faults.replay(record)
    ask_metadata(broker, "t")
    ask_metadata(broker, "t")
    assert broker.faults.unplayed == list(record.events)
    ask_metadata(broker, "t")
    assert broker.faults.unplayed == []


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
