"""Hostile input over TLS, on a TLS listener without TLS, and before authentication, with small and full counts.

ODRADEK_SOAK_FRAMES shortens the full run of mutated requests, and ODRADEK_SOAK_SEED repeats it.
"""

from __future__ import annotations

import os
import random
import socket
import ssl
import struct
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from odradek.broker.network.authentication.tls_handshakes import HANDSHAKE_TIMEOUT_MS
from odradek.protocol.api import API, ApiKey
from tests.conformance.security.conftest import Certificates
from tests.support.loads.hostile import hostile_input
from tests.support.loads.hostile.failed_logins import delayed_logins
from tests.support.loads.hostile.hostile_input import SOON_S, Connect, awaits_close
from tests.support.loads.hostile.slow_clients import TlsFiles, never_read, slow_and_idle
from tests.support.loads.hostile.widest_requests import widest_requests
from tests.support.processes.memory_growth import Growth
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.processes.ports import free_port
from tests.support.wire.raw_client import ConnectionClosedError, RawClient
from tests.support.wire.raw_topics import make_topic
from tests.support.wire.requests import build

TIMEOUT_S = 3.0
"""A request that waits for others is given up after that."""
ANSWERED = {ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE}
LIMIT = 4_000
"""The frames of the slow clients have 2,000 bytes."""
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="secret";'
PROTOCOLS = "PLAINTEXT:PLAINTEXT,TLS:SSL,AUTH:SASL_PLAINTEXT,TLSAUTH:SASL_SSL"
SCRAM_JAAS = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
WIDEST_BYTES = 24 << 20
"""At the peak, for one request: eight times its frame of 1 MB, and 16 MB."""
PIPELINED = 10_000
PIPELINED_BYTES = 32 << 20
DELAY_MS = 3000
LOGIN_BYTES = 64 * 1024
REFUSED_FRAMES = 20_000
"""More of them show nothing: a connection that is refused at its first bytes brings nothing to the parsers."""


TlsClient = Callable[..., RawClient]
"""Of the broker and, if it is not to wait long, a time limit in seconds: a client of the listener with TLS."""


class Counts(NamedTuple):
    """How much of each."""

    frames: int
    junk: int
    sizes: int
    bombs: int
    """Of each codec."""
    apis: int
    """Of which all arrays are filled."""
    idle: int
    slow: int
    max_idle_s: float
    readers: int
    log_bytes: int
    """What each of the readers asks for."""
    calls: int
    delayed_logins: int
    seed: int
    """Of the mutated requests and of the chosen APIs: the few are the same in each run."""


FEW = Counts(300, 200, 20, 1, 3, 100, 100, 8.0, 5, 5_000_000, 200, 200, 7)
FULL = Counts(
    frames=int(os.environ.get("ODRADEK_SOAK_FRAMES", "1000000")),
    junk=10_000,
    sizes=1_000,
    bombs=50,
    apis=len(API),
    idle=5_000,
    slow=1_000,
    max_idle_s=120.0,
    readers=100,
    log_bytes=100_000_000,
    calls=2_000,
    delayed_logins=1_000,
    seed=int(os.environ.get("ODRADEK_SOAK_SEED", str(random.randrange(2**32)))),
)


class Listeners:
    """The ports of a broker's listeners."""

    def __init__(self) -> None:
        self.plain, self.tls, self.sasl, self.sasl_tls = (free_port() for _ in range(4))

    def settings(self, max_idle_s: float) -> dict[str, str]:
        ports = {"PLAINTEXT": self.plain, "TLS": self.tls, "AUTH": self.sasl, "TLSAUTH": self.sasl_tls}
        entries = {"plain": JAAS, "scram-sha-256": SCRAM_JAAS}
        return {
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
            "listener.security.protocol.map": PROTOCOLS,
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            **{
                f"listener.name.{listener}.{mechanism}.sasl.jaas.config": entry
                for listener in ("auth", "tlsauth")
                for mechanism, entry in entries.items()
            },
            "sasl.server.max.receive.size": str(LIMIT),
            "connections.max.idle.ms": str(int(max_idle_s * 1000)),
            "connection.failed.authentication.delay.ms": "0",
        }


@pytest.fixture(scope="module")
def listeners() -> Listeners:
    return Listeners()


@pytest.fixture(scope="module", params=[FEW, pytest.param(FULL, marks=pytest.mark.soak)], ids=["few", "full"])
def counts(request: pytest.FixtureRequest) -> Counts:
    chosen: Counts = request.param
    return chosen


@pytest.fixture(scope="module")
def broker(
    counts: Counts, listeners: Listeners, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OdradekBroker]:
    settings = certificates.broker_settings(**(hostile_input.SETTINGS | listeners.settings(counts.max_idle_s)))
    with running(OdradekBroker(tmp_path_factory.mktemp("hostile"), settings, listeners.plain)) as process:
        yield process


@pytest.fixture(params=["TLS", "TLS port without TLS", "SASL"])
def connect(request: pytest.FixtureRequest, listeners: Listeners, certificates: Certificates) -> Connect:
    port = listeners.sasl if request.param == "SASL" else listeners.tls
    context = certificates.context(certificates.client) if request.param == "TLS" else None

    session: ssl.SSLSession | None = None

    def opened(broker: OdradekBroker) -> socket.socket:
        """With TLS: the session of an earlier connection, which costs the broker two thirds of a new one."""
        nonlocal session
        connection = socket.create_connection((broker.host, port), timeout=15)
        if context is None:
            return connection
        if session is None:
            with RawClient(broker.host, port, tls=context) as client:
                client.call(build(ApiKey.API_VERSIONS), 0)  # the ticket comes before the answer
                session = client.tls_session
        return context.wrap_socket(connection, server_hostname="localhost", session=session)

    return opened


@pytest.mark.parametrize(
    ("connect", "most"),
    [("TLS", FULL.frames), ("TLS port without TLS", REFUSED_FRAMES), ("SASL", REFUSED_FRAMES)],
    ids=["TLS", "TLS port without TLS", "SASL"],
    indirect=["connect"],
)
def test_mutated_requests(broker: OdradekBroker, counts: Counts, connect: Connect, most: int) -> None:
    hostile_input.mutated_requests(broker, min(counts.frames, most), counts.seed, connect)


@pytest.mark.parametrize("connect", ["TLS", "SASL"], indirect=True)
def test_impossible_sizes(broker: OdradekBroker, counts: Counts, connect: Connect) -> None:
    hostile_input.impossible_sizes(broker, counts.sizes, connect)


def test_other_protocols(broker: OdradekBroker, counts: Counts, connect: Connect) -> None:
    hostile_input.other_protocols(broker, counts.junk, counts.seed, connect)


@pytest.mark.parametrize("where", ["tls", "sasl", "inside TLS"])
def test_slow_and_idle_clients(
    broker: OdradekBroker, counts: Counts, listeners: Listeners, certificates: Certificates, where: str
) -> None:
    """Without a byte of the handshake, or with a byte of a frame a second; a byte that is not TLS ends a connection."""
    make_topic(broker, "t")
    slow_and_idle(
        broker,
        idle=counts.idle,
        slow=0 if where == "tls" else counts.slow,
        max_idle_s=min(counts.max_idle_s, HANDSHAKE_TIMEOUT_MS / 1000) if where == "tls" else counts.max_idle_s,
        calls=counts.calls,
        port=listeners.sasl if where == "sasl" else listeners.tls,
        tls=TlsFiles(str(certificates.ca), str(certificates.pem())) if where == "inside TLS" else None,
    )


def test_clients_inside_tls_that_never_read_their_fetch(
    broker: OdradekBroker, counts: Counts, listeners: Listeners, certificates: Certificates
) -> None:
    make_topic(broker, "t")
    never_read(
        broker,
        readers=counts.readers,
        log_bytes=counts.log_bytes,
        port=listeners.tls,
        tls=certificates.context(certificates.client),
        calls=counts.calls,
    )


@pytest.fixture(params=["SASL_PLAINTEXT", "SASL_SSL"])
def knock(
    request: pytest.FixtureRequest, listeners: Listeners, certificates: Certificates
) -> Callable[[float], socket.socket]:
    """Opens a connection that has to authenticate, with a time limit in seconds."""
    context = certificates.context()

    def opened(timeout_s: float) -> socket.socket:
        if request.param == "SASL_PLAINTEXT":
            return socket.create_connection(("127.0.0.1", listeners.sasl), timeout_s)
        plain = socket.create_connection(("127.0.0.1", listeners.sasl_tls), timeout=15)
        connection = context.wrap_socket(plain, server_hostname="127.0.0.1")
        connection.settimeout(timeout_s)
        return connection

    return opened


def test_every_api_and_version_before_authentication(
    broker: OdradekBroker, knock: Callable[[float], socket.socket]
) -> None:
    """All but ApiVersions and SaslHandshake are closed without an answer."""
    for key, spec in API.items():
        for version in range(spec.min_version, spec.max_version + 2):
            frame = struct.pack(">hhih", key, version, 5, 2) + b"me"
            frame += b"\0" * (spec.request_header_version(version) == 2) + bytes(50)
            with knock(15) as client:
                client.sendall(struct.pack(">i", len(frame)) + frame)
                assert awaits_close(client) or key in ANSWERED, (spec.name, version)


@pytest.mark.parametrize("size", [LIMIT + 1, 2**31 - 1])
def test_a_frame_above_the_limit_is_closed_before_it_is_read(
    broker: OdradekBroker, knock: Callable[[float], socket.socket], size: int
) -> None:
    """Only its size is sent."""
    with knock(15) as client:
        client.sendall(struct.pack(">i", size))
        assert awaits_close(client)
    with knock(0.2) as client:
        client.sendall(struct.pack(">i", LIMIT))
        with pytest.raises(TimeoutError):
            awaits_close(client)


@pytest.fixture
def tls_client(listeners: Listeners, certificates: Certificates) -> TlsClient:
    context = certificates.context(certificates.client)
    return lambda broker, timeout_s=30: RawClient(broker.host, listeners.tls, timeout_s=timeout_s, tls=context)


def test_bombs_inside_tls(broker: OdradekBroker, counts: Counts, tls_client: TlsClient) -> None:
    hostile_input.bombs(broker, counts.bombs, tls_client)


def test_arrays_as_long_as_a_megabyte_allows_inside_tls(
    broker: OdradekBroker, counts: Counts, tls_client: TlsClient
) -> None:
    watch = hostile_input.Watch(broker)
    chosen = random.Random(counts.seed).sample(list(API.values()), counts.apis)
    growth, largest = 0, ""
    with watch.looking():
        for name, frame in widest_requests(chosen):
            one = Growth(broker.pid)
            with tls_client(broker, TIMEOUT_S) as client, suppress(OSError, ConnectionClosedError):
                client.send_frame(frame)
                client.receive_frame()
            if one.most > growth:
                growth, largest = one.most, f"{name}: {one}"
    print(f"{counts.apis} APIs: {growth >> 20} MB more at most, {watch.text}")
    assert watch.longest_s < SOON_S
    assert growth < WIDEST_BYTES, largest


def test_ten_thousand_requests_on_their_way_inside_tls_are_answered_in_order(
    broker: OdradekBroker, tls_client: TlsClient
) -> None:
    request = build(ApiKey.METADATA, topics=[])
    before = psutil.Process(broker.pid).memory_info().rss
    with tls_client(broker) as client:
        sent = [client.send(request, 1) for _ in range(PIPELINED)]
        for correlation_id in sent:
            client.receive(ApiKey.METADATA, 1, correlation_id)
    assert psutil.Process(broker.pid).memory_info().rss - before < PIPELINED_BYTES


def test_many_delayed_logins_cost_little(counts: Counts, certificates: Certificates, tmp_path: Path) -> None:
    own = Listeners()
    settings = certificates.broker_settings(**own.settings(600)) | {
        "connection.failed.authentication.delay.ms": str(DELAY_MS),
    }
    with running(OdradekBroker(tmp_path, settings, own.plain)) as broker:
        costs = delayed_logins(broker, own.sasl, counts.delayed_logins)
    print(f"{counts.delayed_logins} delayed logins: {costs}")
    assert costs.soonest_s >= DELAY_MS / 1000
    assert costs.memory_bytes < counts.delayed_logins * LOGIN_BYTES
    assert costs.longest_s < SOON_S
