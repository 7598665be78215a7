"""Metadata through a real ZooKeeper and back: nothing is lost, no number is given twice, big trees pass.

`test_interchange` runs brokers on the copies.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from odradek.controller.tree.embedded_tree import METADATA_FILE, TreeDatabase
from odradek.controller.tree.metadata_tree import (
    BadVersion,
    Create,
    CreateMode,
    Delete,
    GetChildren,
    GetData,
    Multi,
    MultiFailed,
    Nodes,
    NoNode,
    Operation,
    SetData,
    TreeError,
)
from odradek.controller.tree.zookeeper_settings import ZooKeeperSettings, hosts_and_chroot
from odradek.controller.tree.zookeeper_tree import ZooKeeperTree
from odradek.controller.znodes import znodes
from odradek.controller.znodes.metadata_copy import TRANSACTION_BYTES_MAX, copy_metadata, read_snapshot
from odradek.timer.clock import SystemClock
from tests.support.async_test import async_test
from tests.support.processes.apache.apache import ZooKeeper

CHANGE = "/config/changes/config_change_"
TOPICS = 400


async def write(nodes: Nodes, operations: Sequence[Operation[object]]) -> None:
    for result in await nodes.submit(operations):
        assert not isinstance(result, TreeError), result


def cluster() -> list[Operation[object]]:
    """Many topics, one of them with as many partitions as make a node of half a megabyte, and used-up numbers."""
    assignment = b'{"partitions":{%s}}' % b",".join(b'"%d":[0]' % partition for partition in range(50_000))
    assert len(assignment) > TRANSACTION_BYTES_MAX
    parents = ("/cluster", "/brokers", znodes.TOPICS, "/config", znodes.CONFIG_CHANGES, znodes.LATEST_PRODUCER_ID_BLOCK)
    operations: list[Operation[object]] = [Create(path) for path in parents]
    operations += [
        Create(znodes.CLUSTER_ID, znodes.encode_cluster_id("abc")),
        Create(znodes.CONTROLLER_EPOCH, b"7"),
        Create(znodes.BROKER_SEQUENCE_ID, b""),
        *[SetData(znodes.BROKER_SEQUENCE_ID, b"")] * 3,
        Create(f"{znodes.TOPICS}/wide", assignment),
        *[Create(CHANGE, b"{}", CreateMode.PERSISTENT_SEQUENTIAL)] * 2000,
        *[Delete(f"{CHANGE}{number:010d}") for number in range(1995)],
    ]
    for number in range(TOPICS):
        path = f"{znodes.TOPICS}/topic-{number}"
        operations += [Create(path, b'{"partitions":{"0":[0]}}'), Create(f"{path}/partitions")]
        operations += [Create(f"{path}/partitions/0"), Create(f"{path}/partitions/0/state", b"{}")]
    return operations


@async_test
async def test_there_and_back(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    hosts, chroot = hosts_and_chroot(zookeeper.new_chroot() + "/deeper")
    there = await ZooKeeperTree.open(ZooKeeperSettings(hosts=hosts, chroot=chroot))
    databases = [await TreeDatabase.open(str(tmp_path / name), SystemClock()) for name in ("a", METADATA_FILE)]
    here, back = [await database.connect() for database in databases]
    await write(here, cluster())

    await copy_metadata(here, there)
    await copy_metadata(there, back)
    original, copy = await read_snapshot(here), await read_snapshot(back)
    assert {path: node.data for path, node in copy.nodes.items()} == {
        path: node.data for path, node in original.nodes.items()
    }
    assert (await back.run(GetData(znodes.LATEST_PRODUCER_ID_BLOCK))).data is None
    assert (await copy_metadata(here, there)).writes == 0
    for nodes in (there, back):
        ((name, stat),) = await nodes.submit(
            [Multi((Create(CHANGE, b"", CreateMode.PERSISTENT_SEQUENTIAL), SetData(znodes.BROKER_SEQUENCE_ID, b"")))]
        )
        assert name.endswith(f"{CHANGE}0000002000")
        assert stat.version == 4

    missing, failed = await there.submit(
        [GetChildren("/nothing"), Multi((SetData("/brokers", b""), SetData("/brokers", b"", 9), Delete("/brokers")))]
    )
    assert isinstance(missing, NoNode)
    assert isinstance(failed, MultiFailed)
    assert (failed.index, type(failed.cause)) == (1, BadVersion)
    await asyncio.gather(there.close(), *[database.close() for database in databases])
