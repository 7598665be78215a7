"""Limits on the rate of new connections, as clients see them (KIP-612)."""

from __future__ import annotations

import socket
import statistics
import struct
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.headers import RequestHeader, encode_request
from odradek.protocol.messages.metadata import MetadataRequest
from tests.support.broker import Broker
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

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
        assert serve(broker, 80) > 0.9
        before.call(MetadataRequest(topics=[]), 1)


def set_rate(client: RawClient, address: str, rate: float) -> None:
    entry = {
        "entity": [{"entity_type": "ip", "entity_name": address}],
        "ops": [{"key": "connection_creation_rate", "value": rate}],
    }
    (result,) = client.call(build(ApiKey.ALTER_CLIENT_QUOTAS, entries=[entry]), 1).entries  # type: ignore[attr-defined]
    assert result.error_code == 0, result.error_message


def is_served(broker: Broker, address: str) -> bool:
    """Whether a client with this address of its own is answered."""
    with socket.create_connection((broker.host, broker.port), 5, source_address=(address, 0)) as client:
        request = encode_request(RequestHeader(ApiKey.METADATA, 1, 1, "c"), MetadataRequest(topics=[]))
        try:
            client.sendall(struct.pack(">i", len(request)) + request)
            return len(client.recv(4)) > 0
        except OSError:
            return False


def test_an_address_that_floods_the_broker_is_turned_away_and_others_are_served(new_broker: NewBroker) -> None:
    broker = new_broker(**WINDOWS)
    with RawClient(broker.host, broker.port) as admin:
        set_rate(admin, "127.0.0.2", 20)
        eventually(lambda: not all(is_served(broker, "127.0.0.2") for _ in range(30)))
        stop = threading.Event()

        def flood() -> int:
            served = 0
            while not stop.is_set():
                served += is_served(broker, "127.0.0.2")
            return served

        with ThreadPoolExecutor(40) as pool:
            started = time.monotonic()
            floods = [pool.submit(flood) for _ in range(40)]
            took_s = [serve(broker, 1) for _ in range(100)]
            time.sleep(max(0, 3 - (time.monotonic() - started)))
            stop.set()
            served = sum(each.result() for each in floods)
            took = time.monotonic() - started
        assert statistics.median(took_s) < 1  # the flood would hold up each of them, a busy machine some
        assert served <= 20 * (took + 2)
        admin.call(MetadataRequest(topics=[]), 1)
