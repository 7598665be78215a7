from __future__ import annotations

import pytest

from odradek.controller.tree.metadata_tree import Create, Multi, Operation
from odradek.controller.znodes import znodes
from odradek.controller.znodes.config_nodes import change_topic_config, write_entity_config
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.protocol.errors import ErrorCode, KafkaError
from tests.support.async_test import async_test
from tests.support.clusters.controller_cluster import controller_cluster


@async_test
async def test_without_a_controller_nothing_is_written() -> None:
    async with controller_cluster() as cluster:
        client = MetadataClient(await cluster.database.connect())
        message = "Cannot set entity configs for topics t when there is no controller."
        with pytest.raises(KafkaError, match=message) as refusal:
            await write_entity_config(client, "topics/t", {})
        assert refusal.value.code is ErrorCode.STALE_CONTROLLER_EPOCH


@async_test
async def test_under_a_kraft_controller_nothing_is_written() -> None:
    async with controller_cluster() as cluster:
        client = MetadataClient(await cluster.database.connect())
        data = b'{"version":2,"brokerid":3000,"timestamp":"1","kraftControllerEpoch":4}'
        await client.tree.run(Create(znodes.CONTROLLER, data))
        with pytest.raises(KafkaError, match="KRaft"):
            await write_entity_config(client, "topics/t", {})


@async_test
async def test_a_controller_that_changes_meanwhile_fails_the_write() -> None:
    async with controller_cluster() as cluster:
        controller = await cluster.start(0)
        tree = controller.client.tree
        original = tree.run

        async def run_after_a_new_election(operation: Operation[object]) -> object:
            if isinstance(operation, Multi):
                await original(Create("/config/topics/t", b"{}"))
                await cluster.brokers[0].tree.expire_session()
            return await original(operation)

        client = MetadataClient(_Tree(run_after_a_new_election))
        with pytest.raises(KafkaError) as refusal:
            await write_entity_config(client, "topics/t", {"a": "b"})
        assert refusal.value.code is ErrorCode.STALE_CONTROLLER_EPOCH
        assert await controller.client.entity_config("topics/t") == {}


@async_test
async def test_a_topic_without_a_config_gets_one() -> None:
    async with controller_cluster() as cluster:
        controller = await cluster.start(0)
        await controller.client.create_recursive(znodes.topic_path("t"))
        await change_topic_config(controller.client, "t", {"a": "b"})
        assert await controller.client.entity_config("topics/t") == {"a": "b"}


@async_test
async def test_the_config_of_a_topic_that_is_deleted_meanwhile_is_not_created() -> None:
    async with controller_cluster() as cluster:
        controller = await cluster.start(0)
        with pytest.raises(KafkaError, match=r"^Topic 't' does not exist\.$") as refusal:
            await change_topic_config(controller.client, "t", {"a": "b"})
        assert refusal.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert not await controller.client.exists(znodes.entity_config_path("topics/t"))
        assert await controller.client.children(znodes.CONFIG_CHANGES) == ()


class _Tree:
    def __init__(self, run: object) -> None:
        self.run = run
