"""The metadata tree on a real ZooKeeper: the contract, and sessions that survive failures of servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from odradek.controller.tree.metadata_tree import Create, Exists, MetadataTree
from odradek.controller.tree.zookeeper_settings import ZooKeeperSettings, hosts_and_chroot
from odradek.controller.tree.zookeeper_tree import ZooKeeperTree
from tests.support.clusters.zookeeper_sessions import expire_session
from tests.support.processes.apache import ZooKeeper
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
