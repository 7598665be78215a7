"""The tree of a simulation fulfils the contract of the port, also where sessions end at the server as in ZooKeeper."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import pytest

from odradek.controller.tree.metadata_tree import (
    Create,
    CreateMode,
    Exists,
    GetData,
    MetadataTree,
    SessionExpired,
    SetData,
    WatchEvent,
)
from odradek.controller.tree.zookeeper_tree import CLOSE_TIMEOUT_S
from tests.support.simulation.environment.network import Network
from tests.support.simulation.environment.tree_server import TreeClient, TreeServer
from tests.support.simulation.environment.virtual_loop import VirtualLoop
from tests.unit.controller.metadata_tree_contract import Clients, MetadataTreeContract

TIMEOUT_MS = 6_000


class _VirtualPolicy(asyncio.DefaultEventLoopPolicy):
    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        return VirtualLoop(Random(1))


@pytest.fixture(autouse=True)
def _virtual_time() -> Iterator[None]:
    asyncio.set_event_loop_policy(_VirtualPolicy())
    yield
    asyncio.set_event_loop_policy(None)


class _Clients:
    root = "/contract"

    def __init__(self, server: TreeServer) -> None:
        self.server = server

    async def connect(self) -> TreeClient:
        loop = self.server.network.loop
        return await TreeClient(self.server, loop.add_machine("client"), TIMEOUT_MS).connect()

    async def expire(self, tree: MetadataTree) -> None:
        assert isinstance(tree, TreeClient)
        session_id = tree.session_id
        tree.expire()
        while tree.session_id == session_id:
            await asyncio.sleep(1)
        await asyncio.sleep(1)

    async def quiesce(self) -> None:
        await asyncio.sleep(1)


@asynccontextmanager
async def opened() -> AsyncIterator[_Clients]:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, VirtualLoop)
    clients = _Clients(TreeServer(Network(loop, Random(2))))
    await (await clients.connect()).run(Create(clients.root))
    yield clients


class TestContract(MetadataTreeContract):
    @asynccontextmanager
    async def cluster(self, tmp_path: Path) -> AsyncIterator[Clients]:
        async with opened() as clients:
            yield clients


async def _watch_ephemeral(clients: _Clients) -> tuple[TreeClient, TreeClient, list[WatchEvent]]:
    """A client with an ephemeral node, and another one that watches it and a node that both can write."""
    one, other = await clients.connect(), await clients.connect()
    events: list[WatchEvent] = []
    await one.run(Create("/e", b"", CreateMode.EPHEMERAL))
    await other.submit([Exists("/e", events.append), GetData("/contract", events.append)])
    return one, other, events


def test_a_session_outlives_a_short_cut_and_hears_of_what_it_missed() -> None:
    async def run() -> None:
        async with opened() as clients:
            one, other, events = await _watch_ephemeral(clients)
            other.cut_off()
            one.cut_off()
            await asyncio.sleep(TIMEOUT_MS / 1000 - 1)
            await (await clients.connect()).run(SetData("/contract", b"x"))
            assert events == []
            one.join()
            other.join()
            assert (await other.run(GetData("/contract"))).data == b"x"
            assert [event.path for event in events] == ["/contract"]
            assert await other.run(Exists("/e")) is not None

    asyncio.run(run())


@pytest.mark.parametrize("way", ["there", "back"])
def test_a_request_that_was_not_answered_is_sent_again(way: str) -> None:
    """If its answer was lost on the way back, it is carried out twice."""

    async def run() -> None:
        async with opened() as clients:
            tree = await clients.connect()
            on_its_way = asyncio.ensure_future(tree.run(SetData("/contract", b"x")))
            await asyncio.sleep(0)
            while way == "back" and clients.server.store.apply(GetData("/contract"), 0).data is None:
                await asyncio.sleep(0.0001)
            tree.cut_off()
            after = asyncio.ensure_future(tree.run(GetData("/contract")))
            await asyncio.sleep(1)
            assert not on_its_way.done()
            tree.join()
            assert (await on_its_way).version == (2 if way == "back" else 1)
            assert (await after).data == b"x"

    asyncio.run(run())


def test_the_server_ends_a_session_long_before_its_client_knows() -> None:
    async def run() -> None:
        async with opened() as clients:
            one, other, events = await _watch_ephemeral(clients)
            lost_id = one.session_id
            one.cut_off()
            waiting = asyncio.ensure_future(one.run(GetData("/contract")))
            await asyncio.sleep(TIMEOUT_MS / 1000 + 1)
            assert await other.run(Exists("/e")) is None
            assert [event.path for event in events] == ["/e"]
            assert not waiting.done()
            one.join()
            with pytest.raises(SessionExpired):
                await waiting
            await asyncio.sleep(1)
            assert one.session_id != lost_id
            assert (await one.run(GetData("/contract"))).data is None

    asyncio.run(run())


def test_closing_ends_what_waits_and_is_not_held_up_by_a_server_that_is_away() -> None:
    async def run() -> None:
        async with opened() as clients:
            tree = await clients.connect()
            closing = asyncio.ensure_future(tree.close())
            await asyncio.sleep(0)
            tree.cut_off()
            waiting = asyncio.ensure_future(_read(tree))
            await asyncio.wait_for(closing, CLOSE_TIMEOUT_S + 1)
            assert await waiting is SessionExpired

            other = await clients.connect()
            other.cut_off()
            waiting = asyncio.ensure_future(_read(other))
            await asyncio.sleep(1)
            await asyncio.wait_for(other.close(), 1)
            assert await waiting is SessionExpired

    asyncio.run(run())


async def _read(tree: TreeClient) -> type[Exception] | None:
    try:
        await tree.run(GetData("/contract"))
    except SessionExpired as error:
        return type(error)
    return None


def test_a_node_is_deleted_by_hand_and_the_client_hears_of_it_late_and_in_order() -> None:
    async def run() -> None:
        async with opened() as clients:
            one, other, events = await _watch_ephemeral(clients)
            assert clients.server.owner("/e") is one
            other.lag(500)
            clients.server.delete("/e")
            assert clients.server.owner("/e") is None
            await asyncio.sleep(0.4)
            assert not events
            assert await other.run(Exists("/e")) is None
            assert [event.path for event in events] == ["/e"]

    asyncio.run(run())
