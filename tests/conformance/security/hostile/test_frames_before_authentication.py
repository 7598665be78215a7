"""The largest frames of a client before it is authenticated, with the default `sasl.server.max.receive.size`.

What a broker may need for them: eight times a frame and 16 MB, and a second of processor time for each.
"""

from __future__ import annotations

import ssl
import struct
from collections.abc import Iterator
from contextlib import suppress
from typing import Final, NamedTuple

import psutil
import pytest

from odradek.broker.config.keys.sasl import UNSECURED_VALIDATOR
from odradek.broker.security.sasl.oauth.oauthbearer import LOGIN_MODULE as OAUTH_MODULE
from odradek.protocol.api import API, ApiKey
from tests.conformance.security.conftest import Certificates
from tests.support.loads.hostile.hostile_input import SOON_S, Watch
from tests.support.loads.hostile.widest_requests import widest_requests
from tests.support.processes.memory_growth import Growth
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.processes.ports import free_port
from tests.support.processes.sasl_listeners import PLAIN_MODULE, SCRAM_MODULE
from tests.support.wire.raw_client import ConnectionClosedError, RawClient
from tests.support.wire.requests import build
from tests.support.wire.sasl_client import handshake

LARGEST_BYTES: Final = 524_288
GROWTH_BYTES: Final = 8 * LARGEST_BYTES + (16 << 20)
PROCESSOR_S: Final = 1.0
ANSWERED: Final = (ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)
MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER")
WAIT_S: Final = 2.0
"""For an answer to a frame that is not whole for the broker."""


class Target(NamedTuple):
    broker: OdradekBroker
    port: int
    tls: ssl.SSLContext | None

    def connection(self) -> RawClient:
        return RawClient(self.broker.host, self.port, timeout_s=WAIT_S, tls=self.tls)


@pytest.fixture(scope="module", params=["SASL_PLAINTEXT", "SASL_SSL"])
def target(
    request: pytest.FixtureRequest, certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Target]:
    plain, port = free_port(), free_port()
    settings = certificates.broker_settings(
        **{
            "listeners": f"PLAINTEXT://127.0.0.1:{plain},AUTH://127.0.0.1:{port}",
            "listener.security.protocol.map": f"PLAINTEXT:PLAINTEXT,AUTH:{request.param}",
            "sasl.enabled.mechanisms": ",".join(MECHANISMS),
            "connection.failed.authentication.delay.ms": "0",
            "listener.name.auth.plain.sasl.jaas.config": f'{PLAIN_MODULE} required user_alice="secret";',
            "listener.name.auth.scram-sha-256.sasl.jaas.config": f"{SCRAM_MODULE} required;",
            "listener.name.auth.oauthbearer.sasl.jaas.config": f"{OAUTH_MODULE} required;",
            "listener.name.auth.oauthbearer.sasl.server.callback.handler.class": UNSECURED_VALIDATOR,
        }
    )
    tls = certificates.context(certificates.client) if request.param == "SASL_SSL" else None
    with running(OdradekBroker(tmp_path_factory.mktemp("first-frames"), settings, plain)) as broker:
        yield Target(broker, port, tls)


def frames() -> Iterator[tuple[str, bytes]]:
    """For every API one with a body of zeros; for those that are answered each array, and false counts."""
    for key, spec in API.items():
        start = struct.pack(">hhih", key, spec.max_version, 1, 2) + b"me\0"
        yield spec.name, start + bytes(LARGEST_BYTES - len(start))
    yield from widest_requests([API[key] for key in ANSWERED], largest_bytes=LARGEST_BYTES)
    tags = b"".join(_varint(tag) + b"\0" for tag in range(170_000))
    start = struct.pack(">hhih", ApiKey.API_VERSIONS, 3, 1, 2) + b"me" + _varint(170_000)
    yield "ApiVersions with tagged fields", (start + tags)[:LARGEST_BYTES]


def _varint(value: int) -> bytes:
    data = b""
    while value > 0x7F:
        data += bytes([value & 0x7F | 0x80])
        value >>= 7
    return data + bytes([value])


def messages(mechanism: str) -> Iterator[bytes]:
    """Of a client that has chosen a mechanism: many separators, and one long name."""
    size = LARGEST_BYTES - 100
    yield bytes(size)
    yield b"," * size
    yield b"=" * size
    yield b"n,,n=" + b"a" * (size - 20) + b",r=nonce"
    yield b"n,,n=a,r=nonce" + b",x=y" * ((size - 20) // 4)
    yield b"n,a=" + b"a" * (size - 30) + b",\1auth=Bearer x\1\1"
    yield b"n,,\1auth=Bearer x" + b"\1a=b" * ((size - 30) // 4) + b"\1\1"
    yield b"\0" + b"a" * (size - 10) + b"\0x"


def test_the_largest_frames_cost_little(target: Target) -> None:
    process, growth, watch = psutil.Process(target.broker.pid), Growth(target.broker.pid), Watch(target.broker)
    costs: dict[str, float] = {}

    def cost(name: str, send: bytes, mechanism: str | None = None) -> None:
        before_s = sum(process.cpu_times()[:2])
        with target.connection() as client, suppress(OSError, ConnectionClosedError):
            if mechanism is None:
                client.send_frame(send)
                client.receive_frame()
            else:
                handshake(client, mechanism)
                client.call(build(ApiKey.SASL_AUTHENTICATE, auth_bytes=send), 2)
        costs[name] = sum(process.cpu_times()[:2]) - before_s

    with watch.looking():
        for name, frame in frames():
            cost(name, frame)
        for mechanism in MECHANISMS:
            for number, message in enumerate(messages(mechanism)):
                cost(f"{mechanism} message {number}", message, mechanism)
    slowest = max(costs, key=costs.__getitem__)
    print(f"{len(costs)} frames: {growth.most / 2**20:.1f} MB more, {slowest} {costs[slowest]:.2f} s, {watch.text}")
    assert len(costs) > len(API) + 10
    assert growth.most <= GROWTH_BYTES
    assert costs[slowest] < PROCESSOR_S
    assert watch.longest_s < SOON_S
