"""Sessions with a real ZooKeeper that is restarted, stalls, or cannot be reached for a while."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from odradek.controller.model.broker_info import Broker, BrokerInfo, EndPoint, SecurityProtocol
from odradek.controller.tree.metadata_tree import (
    BadVersion,
    ConnectionLoss,
    Create,
    CreateMode,
    Delete,
    Exists,
    GetChildren,
    GetData,
    SessionExpired,
    SetData,
    WatchEvent,
)
from odradek.controller.tree.zookeeper_settings import ZooKeeperSettings, hosts_and_chroot
from odradek.controller.tree.zookeeper_tree import ZooKeeperTree
from odradek.controller.znodes import znodes
from odradek.controller.znodes.election import register_controller
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.controller.znodes.registration import create_base_nodes, register_broker
from odradek.timer.clock import SystemClock
from tests.support.async_test import async_test
from tests.support.clusters.zookeeper_sessions import Line
from tests.support.processes.apache.apache import ZooKeeper
from tests.support.processes.ports import free_port

SESSION_TIMEOUT_MS = 4_000


def settings(connect: str) -> ZooKeeperSettings:
    hosts, chroot = hosts_and_chroot(connect)
    return ZooKeeperSettings(hosts=hosts, chroot=chroot, session_timeout_ms=SESSION_TIMEOUT_MS)


@asynccontextmanager
async def opened(connect: str) -> AsyncIterator[ZooKeeperTree]:
    tree = await ZooKeeperTree.open(settings(connect))
    try:
        yield tree
    finally:
        await tree.close()


class _Log:
    """What a session went through, and the watch events in between."""

    def __init__(self, tree: ZooKeeperTree) -> None:
        self.lines: list[str] = []
        tree.add_session_listener(self)

    async def session_lost(self) -> None:
        self.lines.append("lost")

    def session_started(self) -> None:
        self.lines.append("started")

    def watch(self, event: WatchEvent) -> None:
        self.lines.append(f"{event.type.value} {event.path}")


@pytest.fixture
def own_zookeeper(tmp_path: Path) -> Iterator[ZooKeeper]:
    """One that nobody else uses."""
    server = ZooKeeper(tmp_path / "own-zookeeper")
    server.start()
    yield server
    server.stop()


@async_test
async def test_a_session_lives_through_a_restart_of_the_server(own_zookeeper: ZooKeeper) -> None:
    async with opened(own_zookeeper.new_chroot()) as tree:
        log = _Log(tree)
        await tree.submit([Create("/e", b"", CreateMode.EPHEMERAL), Create("/a", b"")])
        await tree.submit([GetData("/a", log.watch), GetChildren("/", log.watch)])
        session_id = tree.session_id
        await asyncio.to_thread(own_zookeeper.stop)
        writing = asyncio.create_task(tree.run(SetData("/b", b"")))
        reading = asyncio.create_task(tree.run(Exists("/e")))
        await asyncio.to_thread(own_zookeeper.start)
        stat = await reading
        assert stat is not None
        assert stat.ephemeral_owner == session_id == tree.session_id
        await asyncio.wait([writing])
        assert log.lines == []
        await tree.submit([SetData("/a", b"new"), Create("/c")])
        assert log.lines == ["changed /a", "children /"]


@pytest.mark.parametrize("stall_s", [0.5, SESSION_TIMEOUT_MS / 1000 + 2])
@async_test
async def test_a_server_that_stalls(own_zookeeper: ZooKeeper, stall_s: float) -> None:
    """Longer than the session lasts, the server may find it expired or not: either is handled, in the right order."""
    async with opened(own_zookeeper.new_chroot()) as tree:
        log = _Log(tree)
        await tree.submit([Create("/a", b""), GetData("/a", log.watch)])
        session_id = tree.session_id
        own_zookeeper.pause()
        writing = asyncio.create_task(tree.run(SetData("/a", b"new", 0)))
        await asyncio.sleep(stall_s)
        assert not writing.done()
        own_zookeeper.resume()
        await asyncio.wait([writing])
        if isinstance(writing.exception(), SessionExpired):
            while "started" not in log.lines:
                await asyncio.sleep(0.01)
            assert log.lines[-2:] == ["lost", "started"]
            assert tree.session_id != session_id
            assert stall_s * 1000 > SESSION_TIMEOUT_MS
        else:
            assert log.lines == ["changed /a"]
            assert tree.session_id == session_id
        assert (await tree.run(GetData("/a"))).stat.version <= 1


@async_test
async def test_changes_behind_a_disconnect_become_watch_events(zookeeper: ZooKeeper) -> None:
    chroot = zookeeper.new_chroot().partition("/")[2]
    async with (
        Line(zookeeper.port) as line,
        opened(f"{line.address}/{chroot}") as tree,
        opened(f"{zookeeper.address}/{chroot}") as other,
    ):
        log = _Log(tree)
        await other.submit([Create(path, b"") for path in ("/data", "/gone", "/both", "/parent", "/same", "/again")])
        await tree.submit([GetData(path, log.watch) for path in ("/data", "/gone", "/both", "/same", "/again")])
        await tree.submit([GetChildren(path, log.watch) for path in ("/both", "/parent", "/same")])
        assert await tree.run(Exists("/new", log.watch)) is None
        session_id = tree.session_id
        line.cut()
        await other.submit([SetData("/data", b"x"), Delete("/gone"), Delete("/both"), Create("/parent/child")])
        await other.submit([Create("/new"), Delete("/again"), Create("/again")])
        line.mend()
        assert (await tree.run(GetData("/data"))).data == b"x"
        missed = {"changed /data", "deleted /gone", "deleted /both", "children /parent", "created /new"}
        assert set(log.lines) == missed | {"changed /again"}
        assert len(log.lines) == 6
        assert tree.session_id == session_id
        await other.submit([SetData("/same", b""), Create("/same/child"), SetData("/data", b"unwatched")])
        await tree.run(Exists("/"))
        assert log.lines[6:] == ["changed /same", "children /same"]


@async_test
async def test_who_wrote_knows_its_own_write_when_the_answer_was_lost(zookeeper: ZooKeeper) -> None:
    """Conditional writes are repeated with the condition they had; election and registration recognise themselves."""
    chroot = zookeeper.new_chroot().partition("/")[2]
    broker = Broker(1, (EndPoint("h", 1, "PLAINTEXT", SecurityProtocol.PLAINTEXT),), None)
    async with Line(zookeeper.port) as line, opened(f"{line.address}/{chroot}") as tree:
        client = MetadataClient(tree)
        await create_base_nodes(client)
        await tree.run(Create("/a", b""))
        for work in (
            tree.run(SetData("/a", b"mine", 0)),
            register_controller(client, 1, SystemClock()),
            register_broker(client, BrokerInfo(broker=broker), SystemClock(), tree.session_id),
        ):
            line.lose_answers()
            task = asyncio.ensure_future(work)
            await asyncio.sleep(0.2)
            line.cut()
            line.mend()
            await asyncio.wait([task])
            if isinstance(task.exception(), BadVersion):
                assert (await tree.run(GetData("/a"))).data == b"mine"
                continue
            result = task.result()
            if isinstance(result, int):
                assert result == (await tree.run(GetData(znodes.broker_id_path(1)))).stat.czxid
            else:
                assert result.epoch == 1
                assert await client.controller_epoch() == (1, result.epoch_zk_version)


@async_test
async def test_a_value_that_the_server_does_not_take_keeps_nothing_else_from_it(zookeeper: ZooKeeper) -> None:
    async with opened(zookeeper.new_chroot()) as tree:
        session_id = tree.session_id
        fits, too_large = bytes(1_000_000), bytes(1_100_000)
        assert (await tree.run(Create("/fits", fits))).stat.data_length == 1_000_000
        writing = [asyncio.create_task(tree.run(Create(f"/{number}", b""))) for number in range(3)]
        with pytest.raises(ConnectionLoss, match=r"/too-large: its jute\.maxbuffer may be too small"):
            await tree.run(Create("/too-large", too_large))
        await asyncio.wait(writing)
        assert await tree.run(Exists("/too-large")) is None
        assert tree.session_id == session_id


@async_test
async def test_no_server_at_the_start_is_told_in_time() -> None:
    port = free_port()
    with pytest.raises(ConnectionLoss, match=f"no ZooKeeper server at 127.0.0.1:{port} answered within 300 ms"):
        await ZooKeeperTree.open(ZooKeeperSettings(hosts=f"127.0.0.1:{port}", connection_timeout_ms=300))


@async_test
async def test_the_second_server_is_found_when_the_first_is_away(zookeeper: ZooKeeper) -> None:
    async with opened(f"127.0.0.1:{free_port()},{zookeeper.new_chroot()}") as tree:
        assert await tree.run(Exists("/")) is not None
