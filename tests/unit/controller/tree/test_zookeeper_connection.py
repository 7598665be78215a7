"""Callbacks of kazoo's thread on the loop, with a fake kazoo; conformance tests use the real one."""

from __future__ import annotations

import asyncio
import os
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from kazoo import exceptions
from kazoo.protocol.serialization import CloseInstance, Exists
from kazoo.protocol.states import Callback, EventType, KazooState, KeeperState, WatchedEvent

from odradek.controller.tree import zookeeper_connection
from odradek.controller.tree.metadata_tree import WatchEvent, WatchEventType
from odradek.controller.tree.zookeeper_connection import End, KazooConnection, Session
from odradek.controller.tree.zookeeper_settings import ZooKeeperSettings, ZooKeeperTls
from tests.support.async_test import async_test

ONE = Session(1, b"one", 10)


class _Client:
    """What is used of KazooClient, and how it calls back."""

    def __init__(self, hosts: str, **options: Any) -> None:
        self.hosts: Any = hosts
        self.randomize_hosts = True
        self.options = options
        self.handler = options["handler"]
        self.state = KazooState.LOST
        self.client_state = KeeperState.CONNECTING
        self.client_id = options["client_id"]
        self.last_zxid = 0
        self.listener: Callable[[str], None] = lambda state: None
        self.calls: list[tuple[object, Any]] = []
        self.is_closed = False
        self._stopped = threading.Event()
        self._connection: Any = SimpleNamespace(retry_sleeper=None, sasl_options=None)

    def add_listener(self, listener: Callable[[str], None]) -> None:
        self.listener = listener

    def start_async(self) -> None:
        self.handler.start()

    def _call(self, request: object, answer: object) -> None:
        self.calls.append((request, answer))

    def close(self) -> None:
        self.is_closed = True

    def becomes(self, client_state: str, state: str) -> None:
        self.client_state = client_state
        if self.state != state:
            self.state = state
            self.listener(state)

    def ends(self) -> None:
        """kazoo's thread comes to its end."""
        self.handler.spawn(lambda: None).join()


class _Events:
    def __init__(self) -> None:
        self.log: list[object] = []
        self.when_ended: Callable[[], None] = lambda: None

    def connected(self, session: Session) -> None:
        self.log.append(session)

    def watch_event(self, event: WatchEvent) -> None:
        self.log.append(event)

    def ended(self, end: End, session: Session | None) -> None:
        self.log.append((end, session))
        self.when_ended()


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[_Client]:
    clients: list[_Client] = []

    def make(hosts: str, **options: object) -> _Client:
        clients.append(_Client(hosts, **options))
        return clients[-1]

    monkeypatch.setattr(zookeeper_connection, "KazooClient", make)
    return clients


def connect(
    made: list[_Client], session: Session | None = None, tls: ZooKeeperTls | None = None
) -> tuple[KazooConnection, _Client, _Events]:
    events = _Events()
    connection = KazooConnection(ZooKeeperSettings(hosts="a:1,b:2", session_timeout_ms=6000, tls=tls), session, events)
    connection.start()
    return connection, made[-1], events


async def hop() -> None:
    await asyncio.sleep(0)
    await asyncio.sleep(0)


@async_test
async def test_connected_is_called_after_the_first_response(made: list[_Client]) -> None:
    _, kazoo, events = connect(made)
    assert kazoo.options["timeout"] == 6
    kazoo.client_id, kazoo.last_zxid = (7, b"seven"), 3
    kazoo.becomes(KeeperState.CONNECTED, KazooState.CONNECTED)
    await hop()
    assert events.log == []
    ((request, answer),) = kazoo.calls
    assert request == Exists("/", None)
    answer.set_exception(exceptions.NoAuthError())
    await hop()
    assert events.log == [Session(7, b"seven", 3)]


@async_test
async def test_answers_and_watch_events_arrive_in_their_order(made: list[_Client]) -> None:
    connection, kazoo, events = connect(made)
    for name in ("first", "second"):
        connection.send(name, events.log.append)
    refusal = exceptions.NoNodeError()

    def work() -> None:
        kazoo.calls[0][1].set("answer")
        for kind in (EventType.CHANGED, EventType.NONE):
            event = WatchedEvent(kind, KeeperState.CONNECTED, "/a")
            kazoo.handler.dispatch_callback(Callback("watch", True, (event,)))
        kazoo.calls[1][1].set_exception(refusal)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert events.log == []
    await hop()
    assert events.log == ["answer", WatchEvent(WatchEventType.CHANGED, "/a"), refusal]


@pytest.mark.parametrize(
    "error", [exceptions.ConnectionLoss(), exceptions.ConnectionClosedError(), exceptions.SessionExpiredError()]
)
@async_test
async def test_ended_covers_all_unanswered_requests(made: list[_Client], error: Exception) -> None:
    connection, kazoo, events = connect(made, ONE)
    connection.send("request", events.log.append)
    kazoo.last_zxid = 12
    kazoo.becomes(KeeperState.CONNECTING, KazooState.SUSPENDED)
    kazoo.becomes(KeeperState.CONNECTED, KazooState.CONNECTED)
    kazoo.becomes(KeeperState.CONNECTING, KazooState.SUSPENDED)
    assert kazoo._stopped.is_set()
    kazoo.calls[0][1].set_exception(error)
    kazoo.becomes(KeeperState.CLOSED, KazooState.LOST)
    assert not kazoo.is_closed
    kazoo.ends()
    await hop()
    assert events.log == [(End.DROPPED, Session(1, b"one", 12))]
    assert kazoo.is_closed


@pytest.mark.parametrize(
    ("client_state", "end"), [(KeeperState.EXPIRED_SESSION, End.EXPIRED), (KeeperState.AUTH_FAILED, End.AUTH_FAILED)]
)
@async_test
async def test_a_session_that_is_over_is_not_followed_by_another(
    made: list[_Client], client_state: str, end: End
) -> None:
    _, kazoo, events = connect(made, ONE)
    assert kazoo.options["client_id"] == (1, b"one")
    assert kazoo.last_zxid == 10
    kazoo.becomes(client_state, KazooState.LOST)
    assert kazoo._stopped.is_set()
    kazoo.becomes(KeeperState.CLOSED, KazooState.LOST)
    kazoo.ends()
    await hop()
    assert events.log == [(end, ONE)]


@pytest.mark.parametrize(
    ("answer", "end"), [(None, End.DROPPED), (-115, End.AUTH_FAILED), (-124, End.AUTH_FAILED), (-1, End.AUTH_FAILED)]
)
@async_test
async def test_a_lost_connection_during_sasl_does_not_refuse_the_credentials(answer: int | None, end: End) -> None:
    """A server that accepts the session, and closes the connection or answers an error to the first token."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _packet(reader)
        accepted = struct.pack(">iiqi", 0, 6000, 7, 16) + bytes(16)
        writer.write(struct.pack(">i", len(accepted)) + accepted)
        xid = (await _packet(reader))[:4]
        if answer is not None:
            refusal = xid + struct.pack(">qii", 0, answer, -1)
            writer.write(struct.pack(">i", len(refusal)) + refusal)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    hosts = "127.0.0.1:{1}".format(*server.sockets[0].getsockname())
    sasl = {"mechanism": "DIGEST-MD5", "username": "kafka", "password": "secret"}
    events = _Events()
    is_over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    KazooConnection(ZooKeeperSettings(hosts=hosts, sasl=sasl), None, events).start()
    events.when_ended = lambda: is_over.set_result(None)
    await is_over
    assert events.log == [(end, Session(7, bytes(16), 0))]
    server.close()


async def _packet(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


@async_test
async def test_ending_the_session_asks_the_server(made: list[_Client]) -> None:
    connection, kazoo, _ = connect(made, ONE)
    connection.end_session()
    assert kazoo.calls[0][0] is CloseInstance
    assert not kazoo._stopped.is_set()


@async_test
async def test_what_a_connection_without_a_thread_has_opened_is_closed(
    made: list[_Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(client: _Client) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_Client, "start_async", start)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        connect(made)
    assert made[-1].is_closed


@async_test
async def test_a_thread_that_dies_has_ended(made: list[_Client], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threading, "excepthook", lambda arguments: None)
    _, kazoo, events = connect(made)

    def die() -> None:
        raise ValueError

    kazoo.handler.spawn(die).join()
    await hop()
    assert events.log == [(End.DROPPED, None)]


def test_nobody_is_told_when_the_loop_is_closed(made: list[_Client]) -> None:
    async def make() -> KazooConnection:
        return connect(made)[0]

    asyncio.run(make())
    made[-1].ends()
    assert made[-1].is_closed


class _Socket:
    def __init__(self, address: tuple[str, int], timeout: float) -> None:
        self.timeout = timeout
        self.steps: list[object] = []

    def setsockopt(self, *option: int) -> None:
        self.steps.append(option)

    def shutdown(self, how: int) -> None:
        self.steps.append("shutdown")
        raise OSError("it has ended already")

    def close(self) -> None:
        self.steps.append("close")


@async_test
async def test_abandoned_connections_end_now_or_as_soon_as_they_are_there(
    made: list[_Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zookeeper_connection.socket, "create_connection", _Socket)
    connection, kazoo, _ = connect(made)
    connected = kazoo.handler.create_connection(("127.0.0.1", 1), "a", 6.0, use_ssl=False)
    no_delay = (6, 1, 1)  # IPPROTO_TCP, TCP_NODELAY
    assert (connected.timeout, connected.steps) == (3.0, [no_delay])
    connection.abandon()
    assert kazoo._stopped.is_set()
    assert connected.steps == [no_delay, "shutdown"]
    with pytest.raises(ConnectionAbortedError):
        kazoo.handler.create_connection(("127.0.0.1", 1), "a", 6.0)
    assert kazoo.handler._socket.steps == [no_delay, "close"]


@async_test
async def test_each_attempt_reads_the_stores(
    made: list[_Client], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """kazoo tries again after ConnectionDropped; the next attempt may find other files."""

    class Context:
        def wrap_socket(self, connection: _Socket, server_hostname: str) -> _Socket:
            connection.steps.append(server_hostname)
            return connection

    monkeypatch.setattr(zookeeper_connection.socket, "create_connection", _Socket)
    tls = ZooKeeperTls(trusted_certificates=str(tmp_path / "store.pem"))
    _, kazoo, _ = connect(made, tls=tls)
    with pytest.raises(exceptions.ConnectionDropped, match=r"cannot use .*store\.pem"):
        kazoo.handler.create_connection(("127.0.0.1", 1), "a", 6.0)
    monkeypatch.setattr(zookeeper_connection, "tls_context", {tls: Context()}.get)
    assert kazoo.handler.create_connection(("127.0.0.1", 1), "a", 6.0).steps[1:] == ["a"]


@async_test
async def test_what_is_ready_is_selected(made: list[_Client]) -> None:
    _, kazoo, _ = connect(made)
    reader, writer = (
        os.fdopen(number, mode, buffering=0) for number, mode in zip(os.pipe(), ("rb", "wb"), strict=True)
    )
    with reader, writer:
        assert kazoo.handler.select([reader], [writer], [], 0) == ([], [writer], [])
        assert kazoo.handler.select([reader], [], [], 0.001) == ([], [], [])
        writer.write(b"x")
        assert kazoo.handler.select([reader], [], [], None) == ([reader], [], [])
        writer.close()
        reader.read(1)
        assert kazoo.handler.select([reader], [], [], 0) == ([reader], [], [])


def test_misleading_log_lines_of_kazoo_are_suppressed(caplog: pytest.LogCaptureFixture) -> None:
    for words in (
        "Failed connecting to Zookeeper within the connection retry policy.",
        "Transition to CONNECTING",
        "Connection dropped: refused",
    ):
        zookeeper_connection.logger.warning(words)
    assert caplog.messages == ["Connection dropped: refused"]


@pytest.mark.parametrize("name", ["zk..example", f"{'z' * 64}.example", "zk.invalid"])
@async_test
async def test_a_name_that_cannot_be_resolved_is_passed_over(
    name: str, made: list[_Client], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    socket = zookeeper_connection.socket
    resolve = socket.getaddrinfo

    def without_name_server(host: str, *arguments: Any, **options: Any) -> Any:
        if host == "zk.invalid":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return resolve(host, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", without_name_server)
    _, kazoo, _ = connect(made)
    kazoo.hosts = [(name, 2181), ("127.0.0.1", 2182)]
    assert kazoo._connection._expand_client_hosts() == [("127.0.0.1", "127.0.0.1", 2182)]
    assert f"Cannot resolve {name}: " in caplog.text
    kazoo.hosts = [(name, 2181)]
    assert kazoo._connection._expand_client_hosts() == [], "kazoo tries again until it is stopped"
