"""The metadata tree on a real ZooKeeper and on `odradek zookeeper`: the contract, sessions that survive failures."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from odradek.controller.tree.metadata_tree import Create, Exists, MetadataTree
from odradek.controller.tree.zookeeper_settings import ZooKeeperSettings, hosts_and_chroot
from odradek.controller.tree.zookeeper_tree import ZooKeeperTree
from tests.support.clusters.zookeeper_sessions import expire_session
from tests.support.processes.apache.apache import ZooKeeper
from tests.support.processes.odradek_zookeeper import OdradekZooKeeper, running_zookeeper
from tests.unit.controller.metadata_tree_contract import Clients, MetadataTreeContract


class _ZooKeeperClients:
    root = "/contract"

    def __init__(self, settings: ZooKeeperSettings) -> None:
        self._settings = settings
        self.trees: list[ZooKeeperTree] = []

    async def connect(self) -> MetadataTree:
        self.trees.append(await ZooKeeperTree.open(self._settings))
        return self.trees[-1]

    async def expire(self, tree: MetadataTree) -> None:
        assert isinstance(tree, ZooKeeperTree)
        await expire_session(self._settings.hosts, tree)

    async def quiesce(self) -> None:
        for tree in self.trees:
            if not tree.is_closed:
                await tree.run(Exists("/"))
        await asyncio.sleep(0)


class TestZooKeeperTreeContract(MetadataTreeContract):
    @pytest.fixture(autouse=True)
    def _server(self, zookeeper: ZooKeeper) -> None:
        hosts, chroot = hosts_and_chroot(zookeeper.new_chroot() + "/deeper")
        self._settings = ZooKeeperSettings(hosts=hosts, chroot=chroot)

    @asynccontextmanager
    async def cluster(self, tmp_path: Path) -> AsyncIterator[Clients]:
        clients = _ZooKeeperClients(self._settings)
        tree = await clients.connect()
        await tree.run(Create(clients.root))
        yield clients
        await asyncio.gather(*[tree.close() for tree in clients.trees])


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OdradekZooKeeper]:
    with running_zookeeper(tmp_path_factory.mktemp("service")) as running:
        yield running


class TestServiceContract(TestZooKeeperTreeContract):
    """The same with `odradek zookeeper` as the server."""

    @pytest.fixture(autouse=True)
    def _server(self, service: OdradekZooKeeper) -> None:  # type: ignore[override]
        hosts, chroot = hosts_and_chroot(service.new_chroot() + "/deeper")
        self._settings = ZooKeeperSettings(hosts=hosts, chroot=chroot)
