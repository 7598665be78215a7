"""What a whole broker does with one connection, on virtual time."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from odradek.protocol.api import ApiKey
from tests.support.simulation.lone_broker import LoneBroker
from tests.support.wire.requests import build

NO_OTHER = 2
"""A variable, and the argument of `getrefcount`."""


def test_nothing_refers_to_a_closed_connection(tmp_path: Path) -> None:
    """Else it is a cycle, which the collector finds after a million connections. Its idle check was one."""
    broker = LoneBroker(tmp_path / "data")
    peer = broker.connect()

    async def visit() -> None:
        await peer.send(build(ApiKey.METADATA, topics=[]), 9)
        peer.close()
        await asyncio.sleep(1)

    broker.run(visit())
    connection = peer.connection
    peer.transport._protocol = peer.connection = None  # type: ignore[assignment]
    try:
        assert sys.getrefcount(connection) == NO_OTHER
    finally:
        broker.stop()
