"""Limits on the rate of new connections, as clients see them (KIP-612)."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from odradek.protocol.messages.metadata import MetadataRequest
from tests.support.broker import Broker
from tests.support.wire.raw_client import RawClient

NewBroker = Callable[..., Broker]

pytestmark = pytest.mark.oracle

WINDOWS = {"quota.window.num": "2"}
"""The first of two windows counts as passed: one second's connections are free, the others come at the rate."""


def serve(broker: Broker, connections: int) -> float:
    """Connect, ask and disconnect, so many times; returns the seconds it took."""
    started = time.monotonic()
    for _ in range(connections):
        with RawClient(broker.host, broker.port) as client:
            client.call(MetadataRequest(topics=[]), 1)
    return time.monotonic() - started


def test_a_listener_takes_as_many_connections_a_second_as_it_may(new_broker: NewBroker) -> None:
    broker = new_broker(**WINDOWS, **{"listener.name.plaintext.max.connection.creation.rate": "40"})
    with RawClient(broker.host, broker.port) as before:
        assert 0.9 < serve(broker, 80) < 4
        before.call(MetadataRequest(topics=[]), 1)
