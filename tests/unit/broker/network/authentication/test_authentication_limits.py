"""What authentications take from the broker: work that outlives the client, and threads."""

from __future__ import annotations

import asyncio
import struct
from types import SimpleNamespace
from typing import cast

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.keys.sasl import VALIDATOR
from odradek.broker.network.authentication.authentication import Authentication, Authentications
from odradek.broker.network.authentication.authentication_counts import AuthenticationCounts
from odradek.broker.network.connection.connection import Connection
from odradek.broker.security.sasl.mechanisms import SaslParts
from odradek.broker.security.sasl.oauth.oauthbearer import LOGIN_MODULE
from odradek.broker.security.sasl.server_authenticator import SaslServerAuthenticator
from odradek.protocol.messages.api_versions import ApiVersionsResponse
from odradek.timer.clock import ManualClock
from odradek.timer.system_timer import SystemTimer
from tests.support.async_test import async_test
from tests.support.disks.logs import DeferredIoPool
from tests.support.in_process.connections.network import Link
from tests.support.in_process.security.sasl_contexts import Credentials, slots


@async_test
async def test_an_authentication_under_way_counts_when_its_client_is_gone() -> None:
    """Else a client that connects again and again would queue calls of a callback handler without end."""
    checked = asyncio.Event()
    tasks: list[asyncio.Future[None]] = []

    async def check(token: bytes) -> bytes:
        await checked.wait()
        return b""

    link = Link()
    owner = SimpleNamespace(in_background=lambda work: tasks.append(asyncio.ensure_future(work)))
    authenticator = SimpleNamespace(is_failed=False, is_complete=False, receive=check)
    authentication = Authentication(
        cast("Authentications", owner),
        link.connection,
        cast("SaslServerAuthenticator", authenticator),
        AuthenticationCounts(),
        1_000,
    )

    def dispatch(connection: Connection, frame: memoryview, received_ms: int) -> None:
        assert authentication.takes(frame, received_ms)

    link.owner.handle = dispatch
    link.receive(struct.pack(">i", 5) + b"token")
    await asyncio.sleep(0)
    assert link.owner.abandoned.of("PLAINTEXT") == 0
    link.connection.connection_lost(ConnectionResetError("reset"))
    assert link.owner.abandoned.of("PLAINTEXT") == 1
    checked.set()
    await asyncio.gather(*tasks)
    assert link.owner.abandoned.of("PLAINTEXT") == 0


def test_the_keys_of_all_listeners_are_fetched_in_one_thread() -> None:
    """Servers that do not answer must not take the threads of the disk."""
    pool = DeferredIoPool()
    settings = {
        "listeners": "A://:1,B://:2",
        "listener.security.protocol.map": "A:SASL_PLAINTEXT,B:SASL_PLAINTEXT",
        "inter.broker.listener.name": "A",
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": "http://idp/jwks",
        "org.apache.kafka.sasl.oauthbearer.allowed.urls": "http://idp/jwks",
    }
    for name in ("a", "b"):
        prefix = f"listener.name.{name}.oauthbearer."
        settings[f"{prefix}sasl.jaas.config"] = f"{LOGIN_MODULE} required;"
        settings[f"{prefix}sasl.server.callback.handler.class"] = VALIDATOR
    clock = ManualClock()
    authentications = Authentications(
        BrokerConfig(settings),
        SaslParts(clock, pool, bytes, Credentials(), None, slots()),
        SystemTimer(clock),
        lambda work: work.close(),
        lambda request, version, connection: ApiVersionsResponse(),
        ApiVersionsResponse,
    )
    authentications.load_listeners()
    assert len(pool.pending) == 1
