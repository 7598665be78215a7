from __future__ import annotations

import pytest

from odradek.controller.admin.config_changes import ConfigChangeListener
from odradek.controller.admin.node_changes import CHANGE_EXPIRATION_MS
from odradek.controller.tree.metadata_tree import Create, CreateMode
from odradek.controller.znodes import znodes
from odradek.controller.znodes.config_nodes import change_entity_config
from tests.support.async_test import async_test
from tests.support.clusters.controller_cluster import ControllerCluster, controller_cluster
from tests.support.clusters.forbidden_nodes import forbidden_nodes

Changes = list[tuple[str, str, dict[str, str]]]


def listener(cluster: ControllerCluster, changes: Changes) -> ConfigChangeListener:
    async def changed(kind: str, name: str, config: dict[str, str]) -> None:
        if "unbearable" in config:
            raise ValueError("a bug")
        changes.append((kind, name, config))

    return ConfigChangeListener(cluster.client, cluster.clock, changed)


@async_test
async def test_everything_there_is_gets_applied_at_the_start() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.create("t", {0: [0]}, {"retention.ms": "1"})
        client = cluster.client
        for path, key in (
            ("brokers/<default>", "a"),
            ("users/alice/clients/app", "b"),
            ("users/<default>", "c"),
            ("ips/127.0.0.1", "d"),
        ):
            await change_entity_config(client, path, {key: "1"})
        changes: Changes = []
        listening = listener(cluster, changes)
        await listening.start()
        await listening.shutdown()
        assert ("topics", "t", {"retention.ms": "1"}) in changes
        assert ("brokers", "<default>", {"a": "1"}) in changes
        assert ("users", "alice/clients/app", {"b": "1"}) in changes
        assert ("users", "<default>", {"c": "1"}) in changes
        assert ("ips", "127.0.0.1", {"d": "1"}) in changes


@async_test
async def test_changes_are_applied_once_and_in_order_with_the_current_value() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.create("t", {0: [0]})
        changes: Changes = []
        listening = listener(cluster, changes)
        await listening.start()
        changes.clear()
        await change_entity_config(cluster.client, "topics/t", {"retention.ms": "1"})
        await settle(cluster)
        assert changes == [("topics", "t", {"retention.ms": "1"})]
        await change_entity_config(cluster.client, "topics/t", {})
        await change_entity_config(cluster.client, "brokers/0", {"x": "y"})
        await settle(cluster)
        assert changes[1:] == [("topics", "t", {}), ("brokers", "0", {"x": "y"})]
        await listening.shutdown()


@async_test
async def test_junk_does_not_stop_the_listener() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        changes: Changes = []
        listening = listener(cluster, changes)
        await listening.start()
        path = f"{znodes.CONFIG_CHANGES}/{znodes.CONFIG_CHANGE_PREFIX}"
        for junk in (b"junk", b'{"version":2,"entity_path":"/topics/t"}', b'{"version":2,"entity_path":"topics/t/"}'):
            await cluster.client.tree.run(Create(path, junk, CreateMode.PERSISTENT_SEQUENTIAL))
        await cluster.client.tree.run(Create(f"{znodes.CONFIG_CHANGES}/other", b"", CreateMode.PERSISTENT))
        await change_entity_config(cluster.client, "clients/c", {"x": "y"})
        await settle(cluster)
        assert changes == [("clients", "c", {"x": "y"})]
        await listening.shutdown()
        await listener(cluster, changes).start()


@async_test
async def test_a_config_that_may_not_be_read_does_not_stop_the_listener(caplog: pytest.LogCaptureFixture) -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        changes: Changes = []
        listening = listener(cluster, changes)
        await listening.start()
        forbidden_nodes(cluster.client.tree).add(znodes.entity_config_path("clients/a"))
        await change_entity_config(cluster.client, "clients/a", {"x": "y"})
        await change_entity_config(cluster.client, "clients/b", {"x": "y"})
        await settle(cluster)
        assert changes == [("clients", "b", {"x": "y"})]
        assert "NoAuthError for /config/clients/a" in caplog.text
        await listening.shutdown()


@async_test
async def test_a_change_that_cannot_be_applied_is_logged_and_the_next_one_is(caplog: pytest.LogCaptureFixture) -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        changes: Changes = []
        await change_entity_config(cluster.client, "clients/a", {"unbearable": "x"})
        await change_entity_config(cluster.client, "clients/b", {"x": "y"})
        listening = listener(cluster, changes)
        await listening.start()
        assert ("clients", "b", {"x": "y"}) in changes
        changes.clear()
        await change_entity_config(cluster.client, "brokers/0", {"unbearable": "secret"})
        await change_entity_config(cluster.client, "clients/c", {"x": "z"})
        await settle(cluster)
        assert changes == [("clients", "c", {"x": "z"})]
        assert "Failed to apply the configs of brokers/0: ['unbearable']" in caplog.text
        assert "secret" not in caplog.text
        await listening.shutdown()


@async_test
async def test_old_notifications_are_purged() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        changes: Changes = []
        listening = listener(cluster, changes)
        await listening.start()
        await change_entity_config(cluster.client, "clients/a", {})
        cluster.clock.advance(CHANGE_EXPIRATION_MS)
        await change_entity_config(cluster.client, "clients/b", {})
        await settle(cluster)
        assert len(await cluster.client.children(znodes.CONFIG_CHANGES)) == 2
        cluster.clock.advance(1)
        await change_entity_config(cluster.client, "clients/c", {})
        await settle(cluster)
        assert await cluster.client.numbered_children(znodes.CONFIG_CHANGES) == [
            "config_change_0000000001",
            "config_change_0000000002",
        ]
        await listening.shutdown()


@async_test
async def test_a_new_session_looks_again() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.start(1)
        changes: Changes = []
        listening = listener(cluster, changes)
        await listening.start()
        await cluster.expire(0)
        await settle(cluster)
        await change_entity_config(cluster.client, "clients/a", {"x": "y"})
        await settle(cluster)
        assert changes == [("clients", "a", {"x": "y"})]
        await listening.shutdown()


async def settle(cluster: ControllerCluster) -> None:
    for _ in range(10):
        await cluster.settle()
