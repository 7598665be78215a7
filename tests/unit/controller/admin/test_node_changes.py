from __future__ import annotations

import pytest

from odradek.controller.admin.node_changes import (
    CHANGE_EXPIRATION_MS,
    LOGGED_BYTES,
    NOTIFICATIONS_AT_ONCE,
    NodeChangeListener,
)
from odradek.controller.tree.metadata_tree import ConnectionLoss, Create, CreateMode, Delete, TreeError
from odradek.controller.znodes.znode_json import BadZnode
from tests.support.async_test import async_test
from tests.support.clusters.controller_cluster import controller_cluster
from tests.support.clusters.forbidden_nodes import forbidden_nodes

PARENT = "/kafka-acl-changes"


@async_test
async def test_a_notification_whose_processing_fails_is_processed_again_with_the_next_one() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.client.create_recursive(PARENT)
        seen: list[tuple[str, bytes | None]] = []

        async def process(path: str, data: bytes | None) -> None:
            seen.append((path, data))
            if len(seen) == 1:
                raise ConnectionLoss(path)

        changes = NodeChangeListener(cluster.client, cluster.clock, PARENT, "change_", process)
        await changes.process_notifications()
        changes.listen()
        for data in (b"first", b"second"):
            await cluster.client.tree.run(Create(f"{PARENT}/change_", data, CreateMode.PERSISTENT_SEQUENTIAL))
            for _ in range(10):
                await cluster.settle()
        await changes.shutdown()
        assert seen == [
            (f"{PARENT}/change_0000000000", b"first"),
            (f"{PARENT}/change_0000000000", b"first"),
            (f"{PARENT}/change_0000000001", b"second"),
        ]


@pytest.mark.parametrize("error", [TreeError(PARENT, "ZooKeeper: NoAuthError"), BadZnode("junk"), ValueError("a bug")])
@async_test
async def test_what_is_wrong_with_one_notification_does_not_stop_those_after_it(
    caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.client.create_recursive(PARENT)
        forbidden = forbidden_nodes(cluster.client.tree)
        seen: list[bytes | None] = []

        async def process(_: str, data: bytes | None) -> None:
            seen.append(data)
            if data == b"x" * 1000:
                raise error

        changes = NodeChangeListener(cluster.client, cluster.clock, PARENT, "change_", process)
        for data in (b"first", b"x" * 1000, b"unread", b"last"):
            await cluster.client.tree.run(Create(f"{PARENT}/change_", data, CreateMode.PERSISTENT_SEQUENTIAL))
        forbidden.add(f"{PARENT}/change_0000000002")
        await changes.process_notifications()
        await changes.process_notifications()
        assert seen == [b"first", b"x" * 1000, b"last"]
        assert f"{PARENT}/change_0000000002 cannot be read" in caplog.text
        assert f"error processing change notification {b'x' * LOGGED_BYTES!r} from" in caplog.text
        cluster.clock.advance(CHANGE_EXPIRATION_MS + 1)
        await changes.process_notifications()
        assert await cluster.client.children(PARENT) == ("change_0000000002",)


@async_test
async def test_many_notifications_are_processed_in_their_order_also_when_one_of_them_is_gone() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        tree = cluster.client.tree
        await cluster.client.create_recursive(PARENT)
        count, gone = 2 * NOTIFICATIONS_AT_ONCE + 1, NOTIFICATIONS_AT_ONCE + 5
        for number in range(count):
            await tree.run(Create(f"{PARENT}/change_", b"%d" % number, CreateMode.PERSISTENT_SEQUENTIAL))
        seen: list[bytes | None] = []

        async def process(_: str, data: bytes | None) -> None:
            if not seen:  # after the names have been read
                await tree.run(Delete(f"{PARENT}/change_{gone:010}"))
            seen.append(data)

        changes = NodeChangeListener(cluster.client, cluster.clock, PARENT, "change_", process)
        await changes.process_notifications()
        await changes.process_notifications()
        assert seen == [b"%d" % number for number in range(count) if number != gone]
