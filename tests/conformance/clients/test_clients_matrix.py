"""Every client produces with every codec it has, and every client reads it back byte for byte.

One topic collects the output of all producers; each consumer then reads the whole of it, so that every pair of
producer and consumer is tried with every codec at the price of one run a client.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.broker import Broker
from tests.support.loads.clients import CREATE_TIME, Client, Console, Message, Received, python_clients
from tests.support.processes.apache.tools import Tools

pytestmark = pytest.mark.oracle

NAMES = ("aiokafka", "confluent", "kafka-python", "console")


def sample(producer: str, codec: str) -> list[Message]:
    """What each producer sends: null and empty keys and values, headers with a null, non-ASCII text, a longer run."""
    label = f"{producer}/{codec}".encode()
    special = [
        Message(key=b"key", value=label),
        Message(key=None, value=b"no key"),
        Message(key=b"tombstone", value=None),
        Message(key=b"", value=b""),
        Message(key="Žižkov".encode(), value="příliš žluťoučký kůň".encode()),
        Message(key=b"h", value=b"headers", headers=(("a", b"1"), ("b", b"2"), ("a", b"3"))),
    ]
    if producer in ("confluent", "console"):  # the other two refuse it on their side
        special.append(Message(key=None, value=None))
        special.append(Message(key=b"h", value=b"null header", headers=(("a", None),)))
    return special + [Message(key=b"%d" % i, value=label * 20) for i in range(40)]


@pytest.fixture(scope="module")
def clients(tools: Tools) -> dict[str, Client]:
    return {client.name: client for client in [*python_clients(), Console(tools)]}


@pytest.fixture(scope="module")
def written(
    broker: Broker, clients: dict[str, Client], unique: Callable[[str], str]
) -> dict[str, tuple[str, list[Message]]]:
    """For each codec a topic, and what all the producers have sent to it, in order."""
    topics: dict[str, tuple[str, list[Message]]] = {}
    for codec in ("none", "gzip", "snappy", "lz4", "zstd"):
        topic = unique(f"matrix-{codec}")
        expected: list[Message] = []
        for client in clients.values():
            messages = sample(client.name, codec)
            offsets = client.produce(broker.bootstrap, topic, messages, codec=codec)
            assert offsets in ([], list(range(len(expected), len(expected) + len(messages))))
            expected += messages
        topics[codec] = (topic, expected)
    return topics


def contents(received: list[Received]) -> list[tuple[object, ...]]:
    return [r.content for r in received]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("consumer", NAMES)
def test_consumer_reads_what_every_producer_wrote(
    broker: Broker, clients: dict[str, Client], written: dict[str, tuple[str, list[Message]]], consumer: str, codec: str
) -> None:
    topic, expected = written[codec]
    received = clients[consumer].consume(broker.bootstrap, topic, len(expected))
    assert [r.offset for r in received] == list(range(len(expected)))
    assert contents(received) == [(m.key, m.value, m.headers) for m in expected]
    assert {r.timestamp_type for r in received} == {CREATE_TIME}


@pytest.mark.parametrize("consumer", NAMES)
def test_consumer_starts_inside_a_batch(
    broker: Broker, clients: dict[str, Client], written: dict[str, tuple[str, list[Message]]], consumer: str
) -> None:
    """A fetch that starts in the middle of a compressed batch gets the whole batch; the client drops what is before."""
    topic, expected = written["lz4"]
    received = clients[consumer].consume(broker.bootstrap, topic, 20, offset=71)
    assert [r.offset for r in received] == list(range(71, 91))
    assert contents(received) == [(m.key, m.value, m.headers) for m in expected[71:91]]
