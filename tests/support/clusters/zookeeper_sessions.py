"""Ends sessions with ZooKeeper and the connections they use, for tests of a metadata tree."""

from __future__ import annotations

import asyncio
import contextlib

from odradek.broker.network.sockets.stream_server import StreamServer
from odradek.controller.tree.metadata_tree import WatchEvent
from odradek.controller.tree.zookeeper_connection import End, KazooConnection, Session
from odradek.controller.tree.zookeeper_settings import ZooKeeperSettings
from odradek.controller.tree.zookeeper_tree import ZooKeeperTree


class Line:
    """A proxy in front of a ZooKeeper, on the loop of the test: connections can be cut, and answers lost."""

    def __init__(self, port: int) -> None:
        self._target_port = port
        self._server = StreamServer(self._serve)
        self._writers: set[asyncio.StreamWriter] = set()
        self._is_cut = False
        self._loses_answers = False
        self.address = ""

    async def __aenter__(self) -> Line:
        self.address = f"127.0.0.1:{await self._server.start('127.0.0.1', 0)}"
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.close()
        self.cut()

    def cut(self) -> None:
        """End every connection, and each new one, until the line is mended."""
        self._is_cut = True
        for writer in self._writers:
            writer.close()

    def mend(self) -> None:
        self._is_cut = self._loses_answers = False

    def lose_answers(self) -> None:
        """From now on requests arrive and answers do not."""
        self._loses_answers = True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        if self._is_cut:
            writer.close()
            return
        behind_reader, behind_writer = await asyncio.open_connection("127.0.0.1", self._target_port)
        self._writers.add(behind_writer)
        await asyncio.gather(self._carry(reader, behind_writer), self._carry(behind_reader, writer, are_answers=True))

    async def _carry(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, are_answers: bool = False
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                if not (are_answers and self._loses_answers):
                    sink.write(data)
        sink.close()


class _Taker:
    """A client that takes over a session and closes it. `is_over` is EXPIRED if the server did not know the session."""

    def __init__(self, hosts: str, session: Session) -> None:
        self.is_over: asyncio.Future[End] = asyncio.get_running_loop().create_future()
        self._connection = KazooConnection(ZooKeeperSettings(hosts=hosts), session, self)
        self._connection.start()

    def connected(self, session: Session) -> None:
        self._connection.end_session()

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
    """End the session of a tree at the server, as a time-out does, and wait until the tree has begun the next.

    The tree connects again as soon as its session is taken over, and may get it back before it is closed. So it is
    taken over until the server knows it no longer.
    """
    renewal, session = _Renewal(), tree._session
    assert session is not None
    tree.add_session_listener(renewal)
    while await _Taker(hosts, session).is_over is not End.EXPIRED:
        pass
    await renewal.is_done
