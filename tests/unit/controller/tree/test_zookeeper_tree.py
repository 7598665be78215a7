"""Sessions, connections and queues over a server that the test plays; the contract runs on a real one (conformance)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TypeVar

import pytest
from kazoo import exceptions
from kazoo.protocol import serialization

from odradek.controller.tree import zookeeper_tree
from odradek.controller.tree.metadata_tree import (
    BadArguments,
    ConnectionLoss,
    Create,
    DataAndStat,
    Exists,
    GetChildren,
    GetData,
    NoNode,
    SessionExpired,
    SetData,
    TreeError,
    WatchEvent,
    WatchEventType,
)
from odradek.controller.tree.zookeeper_connection import ConnectionEvents, End, Session
from odradek.controller.tree.zookeeper_multi_read import READS_TOGETHER_MAX, READS_TOGETHER_MIN, MultiRead
from odradek.controller.tree.zookeeper_settings import REQUESTS_IN_FLIGHT_MAX, ZooKeeperSettings
from odradek.controller.tree.zookeeper_tree import REQUEST_BYTES_MAX, SESSION_EVENTS, ZooKeeperTree
from tests.support.async_test import async_test
from tests.unit.controller.tree.test_zookeeper_requests import STAT

T = TypeVar("T")
ONE, TWO = Session(1, b"one", 10), Session(2, b"two", 20)


@pytest.fixture(autouse=True)
def _without_delay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper_tree, "RETRY_S", 0)


@dataclass
class PlayedConnection:
    """One connection of a server whose answers the test gives."""

    session: Session | None
    events: ConnectionEvents
    asked: list[tuple[object, Callable[[object], None]]] = field(default_factory=list)
    steps: list[str] = field(default_factory=list)

    def start(self) -> None:
        self.steps.append("start")

    def send(self, request: object, on_answer: Callable[[object], None]) -> None:
        self.asked.append((request, on_answer))

    def end_session(self) -> None:
        self.steps.append("end session")
        self.events.ended(End.DROPPED, self.session)

    def abandon(self) -> None:
        self.steps.append("abandon")
        self.events.ended(End.DROPPED, self.session)

    def answer(self, value: object) -> None:
        """To the oldest request."""
        _, on_answer = self.asked.pop(0)
        on_answer(value)

    @property
    def paths(self) -> list[str]:
        return [getattr(request, "path", "") for request, _ in self.asked]


class PlayedServer:
    def __init__(self, chroot: str = "/k", **settings: int) -> None:
        self.connections: list[PlayedConnection] = []
        self.settings = ZooKeeperSettings(hosts="zk:2181", chroot=chroot, **settings)

    def connect(
        self, settings: ZooKeeperSettings, session: Session | None, events: ConnectionEvents
    ) -> PlayedConnection:
        assert settings is self.settings
        self.connections.append(PlayedConnection(session, events))
        return self.connections[-1]

    @property
    def last(self) -> PlayedConnection:
        return self.connections[-1]


async def opened(
    waits_for_server: bool = True, chroot: str = "/k", **settings: int
) -> tuple[ZooKeeperTree, PlayedServer]:
    server = PlayedServer(chroot, **settings)
    tree = ZooKeeperTree(server.settings, waits_for_server=waits_for_server, make_connection=server.connect)
    connecting = asyncio.create_task(tree.connect())
    await turns()
    server.last.events.connected(ONE)
    await connecting
    return tree, server


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def begun(work: Coroutine[object, object, T]) -> asyncio.Task[T]:
    task = asyncio.create_task(work)
    await turns()
    return task


class _Listener:
    def __init__(self) -> None:
        self.log: list[str] = []
        self.may_go_on = asyncio.Event()

    async def session_lost(self) -> None:
        self.log.append("lost")
        await self.may_go_on.wait()
        self.log.append("handled")

    def session_started(self) -> None:
        self.log.append("started")


@async_test
async def test_the_time_of_each_answer_is_noted(monkeypatch: pytest.MonkeyPatch) -> None:
    tree, server = await opened()
    asking = await begun(tree.submit([GetData("/a"), GetData("/b")]))
    loop = asyncio.get_running_loop()
    later_s = loop.time() + 0.25
    monkeypatch.setattr(loop, "time", lambda: later_s)
    for _ in range(2):
        server.last.answer((b"", STAT))
    monkeypatch.undo()
    await asking
    assert tree.latency_ms.count == 2
    assert 240 <= tree.latency_ms.quantiles()[0] <= 300


@async_test
async def test_no_more_requests_than_allowed_are_ahead_of_the_answers() -> None:
    tree, server = await opened(max_in_flight_requests=2)
    reading = await begun(tree.submit([GetData(path) for path in ("/a", "/b", "/c")]))
    assert server.last.paths == ["/k/a", "/k/b"]
    server.last.answer((b"a", STAT))
    assert server.last.paths == ["/k/b", "/k/c"]
    server.last.answer(exceptions.NoNodeError())
    server.last.answer((None, STAT))
    first, second, third = await reading
    assert not isinstance(first, TreeError)
    assert isinstance(second, NoNode)
    assert not isinstance(third, TreeError)
    assert (first.data, third.data) == (b"a", None)


@pytest.mark.parametrize("allowed", [REQUESTS_IN_FLIGHT_MAX, REQUESTS_IN_FLIGHT_MAX + 1])
@async_test
async def test_the_pipe_to_kazoos_thread_is_never_full(allowed: int) -> None:
    tree, server = await opened(max_in_flight_requests=allowed)
    reading = await begun(tree.submit([Exists("/a")] * (REQUESTS_IN_FLIGHT_MAX + 2)))
    assert len(server.last.asked) == REQUESTS_IN_FLIGHT_MAX
    reading.cancel()


def reads(count: int) -> list[GetData]:
    return [GetData(f"/n{number}") for number in range(count)]


@async_test
async def test_many_reads_leave_in_few_requests_before_any_is_answered() -> None:
    tree, server = await opened()
    count = 4 * READS_TOGETHER_MAX + 1
    reading = await begun(tree.submit([*reads(count), Exists("/last")]))
    groups = [request for request, _ in server.last.asked[:-1]]
    assert [len(group.paths) for group in groups if isinstance(group, MultiRead)] == [READS_TOGETHER_MAX] * 4 + [1]
    number = 0
    for group in groups:
        assert isinstance(group, MultiRead)
        answers = [(path.encode(), STAT) for path in group.paths]
        if not number:
            answers[1] = exceptions.NoNodeError()  # type: ignore[call-overload]
        number += len(answers)
        server.last.answer(answers)
    server.last.answer(None)
    first, second, *others, last = await reading
    assert isinstance(second, NoNode)
    found = [each.data for each in (first, *others) if isinstance(each, DataAndStat)]
    assert found == [f"/k/n{number}".encode() for number in range(count) if number != 1]
    assert last is None


@async_test
async def test_few_reads_those_with_watchers_and_malformed_ones_are_not_put_together() -> None:
    tree, server = await opened(max_in_flight_requests=100)
    few, watching = reads(READS_TOGETHER_MIN - 1), GetData("/w", lambda event: None)
    reading = await begun(tree.submit([*few, watching, GetData("bad"), *few]))
    assert server.last.paths == [f"/k{read.path}" for read in (*few, watching, *few)]
    for _ in range(2 * len(few) + 1):
        server.last.answer((b"", STAT))
    results = await reading
    assert [index for index, each in enumerate(results) if isinstance(each, BadArguments)] == [len(few) + 1]


@async_test
async def test_an_error_of_the_whole_request_is_that_of_each_read() -> None:
    tree, server = await opened()
    reading = await begun(tree.submit(reads(READS_TOGETHER_MIN)))
    server.last.answer(exceptions.NoAuthError())
    assert [type(each) for each in await reading] == [TreeError] * READS_TOGETHER_MIN


@async_test
async def test_a_server_before_3_6_is_asked_one_by_one() -> None:
    """It answers Unimplemented and closes the connection; requests that it had not answered are sent again."""
    tree, server = await opened(max_in_flight_requests=2)
    reading = await begun(tree.submit(reads(3 * READS_TOGETHER_MAX)))
    assert [len(request.paths) for request, _ in server.last.asked] == [READS_TOGETHER_MAX] * 2  # type: ignore[attr-defined]
    server.last.answer(exceptions.UnimplementedError())
    server.last.events.ended(End.DROPPED, ONE)
    server.last.events.connected(ONE)
    asked = []
    while server.last.asked:
        asked += server.last.paths[:1]
        server.last.answer((b"", STAT))
    assert sorted(asked) == sorted(f"/k{read.path}" for read in reads(3 * READS_TOGETHER_MAX))
    assert all(isinstance(each, DataAndStat) for each in await reading)
    await begun(tree.submit(reads(READS_TOGETHER_MIN)))
    assert server.last.paths == ["/k/n0", "/k/n1"]


@async_test
async def test_malformed_paths_are_refused_in_their_place() -> None:
    tree, server = await opened()
    reading = await begun(tree.submit([GetData("bad"), Exists("/a")]))
    server.last.answer(None)
    refused, absent = await reading
    assert isinstance(refused, BadArguments)
    assert absent is None
    assert await tree.submit([]) == []


@async_test
async def test_after_a_disconnect_unanswered_requests_are_sent_again_in_their_order() -> None:
    tree, server = await opened(max_in_flight_requests=2)
    writing = await begun(tree.submit([SetData(path, b"", 0) for path in ("/a", "/b", "/c")]))
    server.last.answer(STAT)
    server.last.events.ended(End.DROPPED, ONE._replace(last_zxid=15))
    assert server.last.session == ONE._replace(last_zxid=15)
    assert server.last.steps == ["start"]
    reading = await begun(tree.run(GetData("/d")))
    assert server.last.asked == []
    server.last.events.connected(ONE)
    assert server.last.paths == ["/k/b", "/k/c"]
    for answer in (exceptions.BadVersionError(), STAT, (b"", STAT)):
        server.last.answer(answer)
    assert [isinstance(result, TreeError) for result in await writing] == [False, True, False]
    await reading
    assert tree.session_id == ONE.id


@pytest.mark.parametrize("excess", [0, 1])
@async_test
async def test_a_request_that_the_server_may_not_take_is_sent_once(excess: int) -> None:
    tree, server = await opened()
    header_bytes = len(serialization.SetData("/k/large", b"", -1).serialize())
    large = SetData("/large", bytes(REQUEST_BYTES_MAX - header_bytes + excess))
    writing = [await begun(tree.run(operation)) for operation in (SetData("/a", b""), large, SetData("/b", b""))]
    server.last.events.ended(End.DROPPED, ONE)
    server.last.events.connected(ONE)
    assert server.last.paths == (["/k/a", "/k/b"] if excess else ["/k/a", "/k/large", "/k/b"])
    while server.last.asked:
        server.last.answer(STAT)
    await asyncio.wait(writing)
    if excess:
        with pytest.raises(ConnectionLoss, match=r"closed the connection on a request of \d+ bytes for /large: "):
            writing[1].result()
    assert [task.exception() is None for task in writing] == [True, not excess, True]


@async_test
async def test_after_a_disconnect_every_watch_is_set_again_before_anything_else() -> None:
    tree, server = await opened()
    events: list[WatchEvent] = []
    watching = await begun(
        tree.submit([GetData("/same", events.append), GetData("/a", events.append), GetChildren("/", events.append)])
    )
    for answer in ((b"", STAT), (b"", STAT), (["x"], STAT)):
        server.last.answer(answer)
    await watching
    server.last.events.ended(End.DROPPED, ONE)
    reading = await begun(tree.run(GetData("/a")))
    server.last.events.connected(ONE)
    assert [request for request, _ in server.last.asked] == [
        serialization.Exists("/k/same", True),
        serialization.Exists("/k/a", True),
        serialization.GetChildren2("/k", True),
        serialization.GetData("/k/a", False),
    ]
    server.last.answer(STAT)
    # Once more, in the middle: rereads are made anew and not sent twice.
    server.last.events.ended(End.DROPPED, ONE)
    server.last.events.connected(ONE)
    assert server.last.paths == ["/k/same", "/k/a", "/k", "/k/a"]
    for answer in (STAT, STAT._replace(mzxid=99), (["x"], STAT), (b"new", STAT)):
        server.last.answer(answer)
    assert (await reading).data == b"new"
    assert events == [WatchEvent(WatchEventType.CHANGED, "/a")]
    server.last.events.watch_event(WatchEvent(WatchEventType.CHANGED, "/k/same"))
    server.last.events.watch_event(WatchEvent(WatchEventType.CHILDREN, "/k"))
    await turns()
    assert events[1:] == [WatchEvent(WatchEventType.CHANGED, "/same"), WatchEvent(WatchEventType.CHILDREN, "/")]


@pytest.mark.parametrize("end", [End.EXPIRED, End.AUTH_FAILED])
@async_test
async def test_a_lost_session_is_handled_to_its_end_before_the_next_is_asked_for(end: End) -> None:
    tree, server = await opened(max_in_flight_requests=1)
    events: list[WatchEvent] = []
    listeners = [_Listener(), _Listener()]
    for listener in listeners:
        tree.add_session_listener(listener)
    watching = await begun(tree.run(GetData("/a", events.append)))
    server.last.answer((b"", STAT))
    await watching
    under_way = [await begun(tree.run(GetData(path))) for path in ("/sent", "/waiting")]
    server.last.events.ended(end, ONE)
    await turns()
    for task in under_way:
        with pytest.raises(SessionExpired):
            await task
    with pytest.raises(SessionExpired):
        await tree.run(GetData("/late"))
    assert len(server.connections) == 1
    listeners[0].may_go_on.set()
    await turns()
    assert len(server.connections) == 1
    listeners[1].may_go_on.set()
    await turns()
    assert server.last.session is None
    early = await begun(tree.run(GetData("/next")))
    assert [listener.log for listener in listeners] == [["lost", "handled"]] * 2
    server.last.events.connected(TWO)
    assert server.last.paths == ["/k/next"]
    server.last.answer((b"", STAT))
    await early
    assert tree.session_id == TWO.id
    assert tree.session_events == {"SyncConnects": 2, SESSION_EVENTS[end]: 1}
    assert [listener.log for listener in listeners] == [["lost", "handled", "started"]] * 2
    server.last.events.watch_event(WatchEvent(WatchEventType.CHANGED, "/k/a"))
    await turns()
    assert events == []


@async_test
async def test_a_listener_that_fails_does_not_keep_the_next_session_away(caplog: pytest.LogCaptureFixture) -> None:
    tree, server = await opened()

    class Failing(_Listener):
        async def session_lost(self) -> None:
            raise ValueError("canary")

        def session_started(self) -> None:
            super().session_started()
            raise ValueError("sparrow")

    listeners = Failing(), Failing()
    for listener in listeners:
        tree.add_session_listener(listener)
    server.last.events.ended(End.EXPIRED, ONE)
    await turns()
    server.last.events.connected(TWO)
    await turns()
    assert [listener.log for listener in listeners] == [["started"]] * 2
    assert caplog.text.count("ValueError: canary") == caplog.text.count("ValueError: sparrow") == 2


@async_test
async def test_no_answer_at_the_start_is_told_with_the_servers() -> None:
    server = PlayedServer(connection_timeout_ms=1)
    tree = ZooKeeperTree(server.settings, make_connection=server.connect)
    with pytest.raises(ConnectionLoss, match="no ZooKeeper server at zk:2181 answered within 1 ms"):
        await tree.connect()
    await tree.close()
    assert server.last.steps == ["start", "abandon"]
    with pytest.raises(SessionExpired):
        await tree.run(GetData("/a"))


@async_test
async def test_refused_credentials_at_the_start_are_told() -> None:
    server = PlayedServer()
    tree = ZooKeeperTree(server.settings, make_connection=server.connect)
    connecting = await begun(tree.connect())
    server.last.events.ended(End.AUTH_FAILED, None)
    with pytest.raises(ConnectionLoss, match="authentication failed"):
        await connecting


@async_test
async def test_requests_fail_with_the_connection_where_nobody_wants_to_wait() -> None:
    tree, server = await opened(waits_for_server=False)
    writing = await begun(tree.submit([SetData("/large", b""), SetData("/b", b"")]))
    server.last.events.ended(End.DROPPED, ONE)
    with pytest.raises(ConnectionLoss, match="/large"):
        await writing


@async_test
async def test_what_is_missing_of_the_chroot_is_created() -> None:
    tree, server = await opened(chroot="/a/b/c")
    making = await begun(tree.create_chroot())
    assert [request for request, _ in server.last.asked] == [
        serialization.Exists(path, False) for path in ("/a", "/a/b", "/a/b/c")
    ]
    for stat in (STAT, None, None):
        server.last.answer(stat)
    await turns()
    assert [
        (type(request).__name__, path) for (request, _), path in zip(server.last.asked, server.last.paths, strict=True)
    ] == [("Create2", "/a/b"), ("Create2", "/a/b/c")]
    server.last.answer(exceptions.NodeExistsError())
    server.last.answer(exceptions.NoAuthError())
    with pytest.raises(TreeError, match="NoAuthError for /a/b/c"):
        await making


@async_test
async def test_a_chroot_that_exists_is_not_created_again() -> None:
    tree, server = await opened()
    making = await begun(tree.create_chroot())
    server.last.answer(STAT)
    await making
    assert server.last.asked == []


@async_test
async def test_closing_ends_the_session_and_everything_asked_of_it() -> None:
    tree, server = await opened(max_in_flight_requests=1)
    under_way = [await begun(tree.run(Create(path))) for path in ("/sent", "/waiting")]
    await tree.close()
    await tree.close()
    assert server.last.steps == ["start", "end session"]
    for task in under_way:
        with pytest.raises(SessionExpired):
            await task
    assert len(server.connections) == 1
    assert tree.is_closed


@async_test
async def test_closing_does_not_wait_for_a_server_that_stalls(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zookeeper_tree, "CLOSE_TIMEOUT_S", 0.001)
    monkeypatch.setattr(zookeeper_tree, "ABANDON_TIMEOUT_S", 0.001)
    monkeypatch.setattr(PlayedConnection, "end_session", lambda connection: connection.steps.append("end session"))
    tree, server = await opened()
    await tree.close()
    assert server.last.steps == ["start", "end session", "abandon"]
    assert len(server.connections) == 1


@async_test
async def test_closing_while_a_lost_session_is_handled_asks_for_no_other() -> None:
    tree, server = await opened()
    listener = _Listener()
    tree.add_session_listener(listener)
    server.last.events.ended(End.EXPIRED, ONE)
    await turns()
    await tree.close()
    assert listener.log == ["lost"]
    assert len(server.connections) == 1
