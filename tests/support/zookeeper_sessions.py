"""What happens to sessions with ZooKeeper, done to a tree on purpose."""

from __future__ import annotations

import asyncio

from odradek.controller.metadata_tree import WatchEvent
from odradek.controller.zookeeper_connection import End, KazooConnection, Session
from odradek.controller.zookeeper_settings import ZooKeeperSettings
from odradek.controller.zookeeper_tree import ZooKeeperTree


class _Taker:
    """Takes over a session, to close it."""

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self.has_it: asyncio.Future[Session] = loop.create_future()
        self.is_over: asyncio.Future[End] = loop.create_future()

    def connected(self, session: Session) -> None:
        self.has_it.set_result(session)

    def watch_event(self, event: WatchEvent) -> None:
        pass

    def ended(self, end: End, session: Session | None) -> None:
        self.is_over.set_result(end)


class _Renewal:
    def __init__(self) -> None:
        self.is_done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def session_lost(self) -> None:
        pass

    def session_started(self) -> None:
        if not self.is_done.done():
            self.is_done.set_result(None)


async def expire_session(hosts: str, tree: ZooKeeperTree) -> None:
    """End the session of a tree behind its back, as a time-out does, and wait until it has begun the next."""
    renewal, taker = _Renewal(), _Taker()
    tree.add_session_listener(renewal)
    assert tree._session is not None
    connection = KazooConnection(ZooKeeperSettings(hosts=hosts), tree._session, taker)
    connection.start()
    assert (await taker.has_it).id == tree.session_id
    connection.end_session()
    await asyncio.gather(taker.is_over, renewal.is_done)
