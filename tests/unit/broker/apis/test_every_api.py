"""Every served API at every version: whatever is asked, an answer comes that can be encoded and read again, or the
connection is closed, and nothing is a bug.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from odradek.broker.apis import HANDLERS
from odradek.broker.dispatch import Route
from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.codec import decode, encode
from odradek.protocol.codec.schema import Kind, Request, Struct
from odradek.protocol.codec.source_writer import fields_at
from odradek.protocol.errors import ErrorCode
from odradek.timer.sliced_work import run_through
from tests.support.in_process.in_process_broker import InProcessBroker, in_process_broker, no_bugs_logged
from tests.support.wire.messages import random_struct

SERVED = [(key, version) for key in HANDLERS for version in range(API[key].min_version, API[key].max_version + 1)]

CHANGES_THE_CLUSTER = {
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
    ApiKey.ALTER_PARTITION,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.ELECT_LEADERS,
    ApiKey.DELETE_TOPICS,
}
"""What comes after them would find a broker that nobody leads: each gets a broker of its own."""

TOPICS = ("a", "topic-1")
"""Names that `random_struct` uses, so that many requests find something."""


def names(item: object) -> str:
    return item.name if isinstance(item, ApiKey) else str(item)


@pytest.fixture(scope="module")
def shared_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcessBroker]:
    with in_process_broker(tmp_path_factory.mktemp("broker")) as broker:
        for topic in TOPICS:
            broker.create_topic(topic, 2)
        yield broker


@pytest.mark.parametrize(("key", "version"), SERVED, ids=names)
def test_empty_request_is_answered(broker: InProcessBroker, key: ApiKey, version: int) -> None:
    broker.finish(broker.send(API[key].request_type()(), version))


@pytest.mark.parametrize(
    ("key", "version"), [served for served in SERVED if served[0] not in CHANGES_THE_CLUSTER], ids=names
)
def test_random_requests_are_answered(broker: InProcessBroker, key: ApiKey, version: int) -> None:
    ask_at_random(broker, key, version)


@pytest.mark.parametrize(
    ("key", "version"), [served for served in SERVED if served[0] in CHANGES_THE_CLUSTER], ids=names
)
def test_random_requests_that_change_the_cluster_are_answered(tmp_path: Path, key: ApiKey, version: int) -> None:
    with in_process_broker(tmp_path) as broker, no_bugs_logged():
        for topic in TOPICS:
            broker.create_topic(topic, 2)
        ask_at_random(broker, key, version)


def ask_at_random(broker: InProcessBroker, key: ApiKey, version: int) -> None:
    rng = random.Random(f"{key.name} {version}")
    for _ in range(5):
        broker.finish(broker.send(random_struct(API[key].request_type(), version, rng), version))


@pytest.mark.parametrize(("key", "version"), SERVED, ids=names)
def test_everything_twice_is_answered(tmp_path: Path, broker: InProcessBroker, key: ApiKey, version: int) -> None:
    """A request whose every collection holds the same two elements: duplicates of topics, partitions, members."""
    request = API[key].request_type()()
    fill_twice(request, version)
    if key in CHANGES_THE_CLUSTER:
        with in_process_broker(tmp_path) as own:
            own.create_topic("a", 2)
            own.finish(own.send(request, version))
    else:
        broker.finish(broker.send(request, version))


def fill_twice(struct: Struct, version: int) -> None:
    in_place, _, _ = fields_at(type(struct), version)
    for field in in_place:
        element = field.element
        if field.kind is Kind.STRING and field.name in ("name", "topic", "topic_name"):
            setattr(struct, field.name, "a")
        elif field.kind is Kind.ARRAY and isinstance(element, type):
            items = [element(), element()]
            for item in items:
                fill_twice(item, version)
            setattr(struct, field.name, items)
        elif field.kind is Kind.ARRAY and element is not None:
            value: object = "a" if element.kind is Kind.STRING else bytes(16) if element.kind is Kind.UUID else 0
            setattr(struct, field.name, [value, value])


@pytest.mark.parametrize(("key", "version"), SERVED, ids=names)
def test_every_refusal_can_be_sent(key: ApiKey, version: int) -> None:
    """Every error of a handler has a response in every version."""
    route = Route(API[key], import_module(HANDLERS[key]))
    if route.error_response is None:
        return  # the generic one has a test of its own
    request = API[key].request_type()()
    fill_twice(request, version)
    response = run_through(route.error_response(request, version, ErrorCode.UNKNOWN_SERVER_ERROR, "reason"))
    assert response is not None or key is ApiKey.PRODUCE
    if response is not None:
        data = encode(response, version)
        assert encode(decode(API[key].response_type(), memoryview(data), version), version) == data


@pytest.mark.parametrize(("key", "version"), SERVED, ids=names)
def test_request_that_ends_too_early_closes_the_connection(broker: InProcessBroker, key: ApiKey, version: int) -> None:
    request: Request = API[key].request_type()()
    fill_twice(request, version)
    whole = broker.frame(request, version)
    if len(whole) == len(broker.frame(API[key].request_type()(), version)):
        return  # it has no body to cut
    waiting = broker.send_frame(whole[:-1])
    assert waiting.connection.close_reason is not None
    assert not waiting.connection.begun
