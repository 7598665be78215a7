"""The metadata tree of a simulation: one server in memory, and clients that reach it over the simulated network.

The server keeps the rules of one operation in the broker's own `TreeStore` (SQLite in memory) and its watches in
`TreeWatches`. What is here is what ZooKeeper adds: requests, answers and watch events that travel, in order for each
client; sessions that time out on the server while their client does not know; connections that end.

A client that is cut off waits. If it is back before its session has timed out, it gets the watch events of the
meantime, and sends unanswered requests again, even if they had been carried out. If not, everything that waits fails
with SessionExpired, the listeners are called, and the next session begins when they are done. `zookeeper_tree` does the
same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextvars import copy_context
from typing import TYPE_CHECKING, Final, TypeVar, cast

from odradek.controller.tree.metadata_tree import (
    Delete,
    Exists,
    MetadataTree,
    Operation,
    SessionExpired,
    SessionListener,
    Stat,
    TreeError,
    Watcher,
    WatchEvent,
)
from odradek.controller.tree.tree_store import TreeStore
from odradek.controller.tree.tree_watches import TreeWatches
from odradek.controller.tree.zookeeper_tree import CLOSE_TIMEOUT_S
from tests.support.simulation.environment.virtual_loop import VirtualClock

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.simulation.environment.network import Network
    from tests.support.simulation.environment.virtual_loop import Machine

ResultT = TypeVar("ResultT")

ZOOKEEPER: Final = "zookeeper"
"""The server's name in the network."""


class TreeServer:
    """Tests may read its `store`, of which nothing is lost while the simulation runs."""

    def __init__(self, network: Network) -> None:
        self.network = network
        self.store = TreeStore(":memory:", VirtualClock(network.loop))
        self.sessions: dict[int, TreeClient] = {}
        self._watches: TreeWatches[TreeClient] = TreeWatches()
        self.on_change: Callable[[str], None] = lambda path: None
        """Called with the path of every node that has changed."""

    def apply(self, client: TreeClient, session_id: int, operations: Sequence[Operation[object]]) -> object:
        """A batch, at once: the results, or SessionExpired."""
        if session_id not in self.sessions:
            return SessionExpired("", "the session has ended")
        results: list[object] = []
        for operation in operations:
            error: TreeError | None = None
            try:
                results.append(self.store.apply(operation, session_id))
            except TreeError as refused:
                error = refused.with_traceback(None)
                results.append(error)
            self._fire()
            self._watches.watch(client, operation, error)
        return results

    def start_session(self, client: TreeClient) -> int:
        session_id = self.store.start_session()
        self.sessions[session_id] = client
        return session_id

    def end_session(self, session_id: int) -> None:
        """The session's nodes and watches go; its client hears of it when it asks next."""
        client = self.sessions.pop(session_id, None)
        if client is not None:
            self._watches.forget(client)
            self.store.end_session(session_id)
            self._fire()

    def owner(self, path: str) -> TreeClient | None:
        """The session of an ephemeral node; None if there is no such node."""
        found = cast("Stat | None", self.store.apply(Exists(path), 0))
        return None if found is None else self.sessions.get(found.ephemeral_owner)

    def delete(self, path: str) -> None:
        """Delete a node, as an operator does."""
        self.store.apply(Delete(path), 0)
        self._fire()

    def _fire(self) -> None:
        for change in self.store.take_changes():
            self.on_change(change.path)
            for client, watcher, event in self._watches.fire(change):
                client.tell(watcher, event)
        self._watches.commit()


class TreeClient(MetadataTree):
    """One client. Implements MetadataTree."""

    def __init__(self, server: TreeServer, machine: Machine, session_timeout_ms: int) -> None:
        self._server = server
        self._network = server.network
        self._machine = machine
        self._session_timeout_ms = session_timeout_ms
        self._session_id = 0
        self._listeners: list[SessionListener] = []
        self._pending: dict[asyncio.Future[object], Callable[[], object]] = {}
        """Requests that were not answered, and what they do at the server."""
        self._unheard: list[Callable[[], None]] = []
        """Watch events that wait because the connection is down."""
        self._connection = 0
        """The number of the connection: frames of an earlier one do not arrive."""
        self._last_arrival_us = [0, 0]
        self._is_closed = False
        self._is_between_sessions = False
        self._is_cut_off = False
        self._is_stalled = False
        self._deadline: asyncio.TimerHandle | None = None
        self._joining: asyncio.TimerHandle | None = None
        self._renewal: asyncio.Task[None] | None = None

    # The port

    @property
    def session_id(self) -> int:
        return self._session_id

    def add_session_listener(self, listener: SessionListener) -> None:
        self._listeners.append(listener)

    async def submit(self, operations: Sequence[Operation[ResultT]]) -> list[ResultT | TreeError]:
        if not operations:
            return []
        if self._is_between_sessions or self._is_closed:
            raise SessionExpired("", "the session has ended")
        session_id = self._session_id
        results = await self._request(lambda: self._server.apply(self, session_id, operations))
        return cast("list[ResultT | TreeError]", results)

    async def close(self) -> None:
        """Fail all waiting requests and end the session. An unreachable server ends it by its time-out."""
        if not self._is_closed:
            self._is_closed = True
            if self._renewal is not None and not self._renewal.done():
                self._renewal.cancel()
                await asyncio.wait({self._renewal})
            self._fail_all("the metadata tree is closed")
            session_id = self._session_id
            ending = asyncio.ensure_future(self._request(lambda: self._server.end_session(session_id)))
            await asyncio.wait({ending}, timeout=0 if self._is_cut_off else CLOSE_TIMEOUT_S)
            ending.cancel()

    async def connect(self) -> TreeClient:
        self._session_id = cast("int", await self._request(lambda: self._server.start_session(self)))
        return self

    # Actions of the simulation

    def cut_off(self) -> None:
        """The connection is down, from now until `join`; the server waits for the session's time-out."""
        if self._joining is not None:
            self._joining.cancel()
            self._joining = None
        self._is_cut_off = True
        self._await_time_out()

    def join(self) -> None:
        """The connection comes up again."""
        if self._is_cut_off and self._joining is None and self._machine.is_alive:
            self._stop_waiting()
            self._joining = self._to_client(self._joined)

    def stall(self) -> None:
        """Pause the client's machine until `recover`."""
        self._is_stalled = True
        self._await_time_out()

    def recover(self) -> None:
        self._is_stalled = False
        if not self._is_cut_off or self._joining is not None:
            self._stop_waiting()
        if not self._is_cut_off and self._session_id not in self._server.sessions:
            self._to_client(self._expired)

    def _await_time_out(self) -> None:
        if self._deadline is None:
            session_id, loop = self._session_id, self._network.loop
            self._deadline = loop.call_later(
                self._session_timeout_ms / 1000,
                lambda: self._server.end_session(session_id),
                context=loop.world.context,
            )

    def _stop_waiting(self) -> None:
        if self._deadline is not None and not self._is_stalled:
            self._deadline.cancel()
            self._deadline = None

    def lag(self, ms: int) -> None:
        """Delay answers and events of the server by that long, until the client has caught up."""
        self._last_arrival_us[1] = self._network.loop.now_us + ms * 1000

    def expire(self) -> None:
        """The server ends the session without a reason."""
        self._server.end_session(self._session_id)
        if not self._is_cut_off:
            self._to_client(self._expired)

    # Underneath

    async def _request(self, work: Callable[[], object]) -> object:
        """Send `work` to the server and wait for its answer."""
        future: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._pending[future] = work
        if not self._is_cut_off:
            self._send(future, work)
        try:
            return await future
        finally:
            self._pending.pop(future, None)

    def _send(self, future: asyncio.Future[object], work: Callable[[], object]) -> None:
        connection = self._connection

        def arrive() -> None:
            if connection == self._connection and not self._is_cut_off:
                result = work()
                self._to_client(lambda: hear(result))

        def hear(result: object) -> None:
            if connection == self._connection and not self._is_cut_off:
                _answer(future, result)

        self._travel(0, arrive, self._network.loop.world)

    def tell(self, watcher: Watcher, event: WatchEvent) -> None:
        """A watch has seen something: in order with the answers; later, if the connection is down."""
        session_id = self._session_id

        def hear() -> None:
            if self._is_cut_off:
                self._unheard.append(hear)
            elif session_id == self._session_id and not self._is_between_sessions:
                watcher(event)

        if self._is_cut_off:
            self._unheard.append(hear)
        else:
            self._to_client(hear)

    def _to_client(self, hear: Callable[[], None]) -> asyncio.TimerHandle:
        return self._travel(1, hear, self._machine)

    def _travel(self, direction: int, arrive: Callable[[], None], machine: Machine) -> asyncio.TimerHandle:
        loop = self._network.loop
        when_us = max(self._last_arrival_us[direction], loop.now_us + self._network.delay_us())
        self._last_arrival_us[direction] = when_us
        return loop.call_at(when_us / 1e6, arrive, context=machine.context)

    def _joined(self) -> None:
        self._joining = None
        self._is_cut_off = False
        self._connection += 1
        if self._session_id not in self._server.sessions and not self._is_between_sessions:
            self._expired()
            return
        unheard, self._unheard = self._unheard, []
        for hear in unheard:
            hear()
        for future, work in list(self._pending.items()):
            self._send(future, work)

    def _expired(self) -> None:
        if self._is_between_sessions or self._is_closed or self._session_id in self._server.sessions:
            return  # said twice
        self._is_between_sessions = True
        self._unheard.clear()
        self._fail_all("the session has ended")
        self._renewal = self._network.loop.start(self._renew(), copy_context())

    def _fail_all(self, why: str) -> None:
        for future in list(self._pending):
            _answer(future, SessionExpired("", why))
        self._pending.clear()

    async def _renew(self) -> None:
        for listener in self._listeners:
            await listener.session_lost()
        await self.connect()
        self._is_between_sessions = False
        for listener in self._listeners:
            listener.session_started()


def _answer(future: asyncio.Future[object], result: object) -> None:
    if future.done():
        return
    if isinstance(result, TreeError):
        future.set_exception(result)
    else:
        future.set_result(result)
