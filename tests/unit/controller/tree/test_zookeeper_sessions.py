"""Which connections the tree makes for its sessions, and when."""

from __future__ import annotations

import asyncio
import errno

import pytest

from odradek.controller.tree import zookeeper_tree
from odradek.controller.tree.zookeeper_connection import End, Session
from odradek.controller.tree.zookeeper_tree import ZooKeeperTree
from tests.support.async_test import async_test
from tests.unit.controller.tree.test_zookeeper_tree import (
    ONE,
    TWO,
    PlayedConnection,
    PlayedServer,
    begun,
    opened,
    turns,
)


@pytest.fixture(autouse=True)
def _without_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper_tree, "RETRY_S", 0)


@async_test
async def test_refused_credentials_are_shown_again_after_a_while() -> None:
    tree, server = await opened()
    server.last.events.ended(End.EXPIRED, ONE)
    await turns()
    server.last.events.ended(End.AUTH_FAILED, None)
    await turns()
    assert len(server.connections) == 3
    server.last.events.connected(TWO)
    assert tree.session_id == TWO.id


@pytest.mark.parametrize("end", [End.EXPIRED, End.AUTH_FAILED])
@async_test
async def test_a_session_that_ends_before_its_first_answer_is_not_asked_for_again(end: End) -> None:
    tree, server = await opened()
    server.last.events.ended(End.EXPIRED, ONE)
    await turns()
    server.last.events.ended(End.DROPPED, TWO)
    assert server.last.session == TWO
    server.last.events.ended(end, TWO)
    await turns()
    assert server.last.session is None
    server.last.events.connected(Session(3, b"three", 30))
    assert tree.session_id == 3


@async_test
async def test_a_connection_that_drops_before_there_is_a_session_is_made_again() -> None:
    server = PlayedServer()
    tree = ZooKeeperTree(server.settings, make_connection=server.connect)
    connecting = await begun(tree.connect())
    server.last.events.ended(End.DROPPED, None)
    server.last.events.connected(ONE)
    await connecting
    assert len(server.connections) == 2


@async_test
async def test_connections_of_a_session_begin_at_a_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    tree, server = await opened()
    monkeypatch.setattr(zookeeper_tree, "RETRY_S", 1.0)
    loop = asyncio.get_running_loop()
    now_s = loop.time() + 1.1
    monkeypatch.setattr(loop, "time", lambda: now_s)
    server.last.events.ended(End.DROPPED, ONE)
    assert len(server.connections) == 2, "the last one began long ago"
    server.last.events.ended(End.DROPPED, ONE)
    await turns()
    assert len(server.connections) == 2
    now_s += 1.1
    await turns()
    assert len(server.connections) == 3
    server.last.events.ended(End.DROPPED, ONE)
    await tree.close()
    now_s += 1.1
    await turns()
    assert len(server.connections) == 3, "a closed tree does not connect"


@pytest.mark.parametrize(
    "error", [OSError(errno.EMFILE, "too many open files"), RuntimeError("can't start new thread")]
)
@async_test
async def test_a_connection_that_cannot_begin_is_tried_again(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tree, server = await opened()
    errors = [error, error]

    def start(connection: PlayedConnection) -> None:
        if errors:
            raise errors.pop()

    monkeypatch.setattr(PlayedConnection, "start", start)
    server.last.events.ended(End.DROPPED, ONE)
    assert len(server.connections) == 4
    server.last.events.connected(ONE)
    errors = [error]
    server.last.events.ended(End.EXPIRED, ONE)
    await turns()
    server.last.events.connected(TWO)
    assert tree.session_id == TWO.id
    assert caplog.text.count(f"Cannot connect to ZooKeeper at zk:2181: {error}. Trying again") == 3
