"""Clients that go while they are being authenticated."""

from __future__ import annotations

import asyncio
import struct
from types import SimpleNamespace
from typing import cast

from odradek.broker.network.authentication.authentication import Authentication, Authentications
from odradek.broker.network.authentication.authentication_counts import AuthenticationCounts
from odradek.broker.network.connection.connection import Connection
from odradek.broker.security.sasl.server_authenticator import SaslServerAuthenticator
from tests.support.async_test import async_test
from tests.support.in_process.connections.network import Link


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
