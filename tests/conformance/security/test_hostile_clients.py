"""Hostile input over TLS, on a TLS listener without TLS, and before authentication. The counts are small."""

from __future__ import annotations

import random
import socket
import struct
from collections.abc import Iterator

import pytest

from odradek.protocol.api import API, ApiKey
from tests.conformance.security.conftest import Certificates
from tests.support.loads import hostile_input
from tests.support.loads.hostile_input import Connect, awaits_close
from tests.support.loads.slow_clients import slow_and_idle
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.processes.ports import free_port
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

FRAMES = 300
JUNK = 200
SIZES = 20
IDLE = 100
SLOW = 20
MAX_IDLE_S = 4.0
SOON_S = 5.0
"""Other tests use the machine at the same time."""
ANSWERED = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}
LIMIT = 4_000
"""The frames of the slow clients have 2,000 bytes."""
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'


class Listeners:
    """The ports of a broker's listeners."""

    def __init__(self) -> None:
        self.plain, self.tls, self.sasl = free_port(), free_port(), free_port()

    @property
    def settings(self) -> dict[str, str]:
        listeners = f"PLAINTEXT://127.0.0.1:{self.plain},TLS://127.0.0.1:{self.tls},AUTH://127.0.0.1:{self.sasl}"
        return {
            "listeners": listeners,
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TLS:SSL,AUTH:SASL_PLAINTEXT",
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.auth.plain.sasl.jaas.config": JAAS,
            "sasl.server.max.receive.size": str(LIMIT),
            "connections.max.idle.ms": str(int(MAX_IDLE_S * 1000)),
            "connection.failed.authentication.delay.ms": "0",
        }


@pytest.fixture(scope="module")
def listeners() -> Listeners:
    return Listeners()


@pytest.fixture(scope="module")
def broker(
    listeners: Listeners, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OdradekBroker]:
    settings = certificates.broker_settings(**(hostile_input.SETTINGS | listeners.settings))
    with running(OdradekBroker(tmp_path_factory.mktemp("hostile"), settings, listeners.plain)) as process:
        yield process


@pytest.fixture(params=["TLS", "TLS port without TLS", "SASL"])
def connect(request: pytest.FixtureRequest, listeners: Listeners, certificates: Certificates) -> Connect:
    port = listeners.sasl if request.param == "SASL" else listeners.tls
    context = certificates.context(certificates.client) if request.param == "TLS" else None

    def opened(broker: OdradekBroker) -> socket.socket:
        connection = socket.create_connection((broker.host, port), timeout=15)
        return connection if context is None else context.wrap_socket(connection, server_hostname="localhost")

    return opened


def test_mutated_requests(broker: OdradekBroker, connect: Connect) -> None:
    hostile_input.mutated_requests(broker, FRAMES, random.randrange(2**32), SOON_S, connect)


@pytest.mark.parametrize("connect", ["TLS", "SASL"], indirect=True)
def test_impossible_sizes(broker: OdradekBroker, connect: Connect) -> None:
    hostile_input.impossible_sizes(broker, SIZES, connect)


def test_other_protocols(broker: OdradekBroker, connect: Connect) -> None:
    hostile_input.other_protocols(broker, JUNK, random.randrange(2**32), connect)


@pytest.mark.parametrize(("listener", "slow"), [("tls", 0), ("sasl", SLOW)])
def test_clients_that_do_not_authenticate(
    broker: OdradekBroker, listeners: Listeners, listener: str, slow: int
) -> None:
    """Without a byte of the handshake, or with a byte of a frame a second; a byte that is not TLS ends a connection."""
    with RawClient(broker.host, broker.port) as client:
        topic = {"name": "t", "num_partitions": 1, "replication_factor": 1}
        client.call(build(ApiKey.CREATE_TOPICS, topics=[topic], timeout_ms=10_000), 5)
    slow_and_idle(broker, idle=IDLE, slow=slow, max_idle_s=MAX_IDLE_S, port=getattr(listeners, listener))


def test_every_api_and_version_before_authentication(broker: OdradekBroker, listeners: Listeners) -> None:
    """All but ApiVersions and SaslHandshake are closed without an answer."""
    for key, spec in API.items():
        for version in range(spec.min_version, spec.max_version + 2):
            frame = struct.pack(">hhih", key, version, 5, 2) + b"me"
            frame += b"\0" * (spec.request_header_version(version) == 2) + bytes(50)
            with socket.create_connection((broker.host, listeners.sasl), timeout=15) as client:
                client.sendall(struct.pack(">i", len(frame)) + frame)
                assert awaits_close(client) or key in ANSWERED, (spec.name, version)


@pytest.mark.parametrize("size", [LIMIT + 1, 2**31 - 1])
def test_a_frame_above_the_limit_is_closed_before_it_is_read(
    broker: OdradekBroker, listeners: Listeners, size: int
) -> None:
    """Only its size is sent."""
    with socket.create_connection((broker.host, listeners.sasl), timeout=15) as client:
        client.sendall(struct.pack(">i", size))
        assert awaits_close(client)
    with socket.create_connection((broker.host, listeners.sasl), timeout=0.2) as client:
        client.sendall(struct.pack(">i", LIMIT))
        with pytest.raises(TimeoutError):
            awaits_close(client)
