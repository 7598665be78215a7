from __future__ import annotations

import pytest

from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.controller.tree.metadata_tree import Create, GetChildren, MetadataTree, Operation, SetData
from odradek.controller.znodes import topic_nodes, znodes
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.create_partitions import CreatePartitionsTopic
from tests.support.async_test import async_test
from tests.support.clusters.controller_cluster import controller_cluster


class _Meanwhile:
    """A tree in which something else is done before the first operation of a type; by default that operation itself,
    as if its answer had been lost.
    """

    def __init__(
        self, tree: MetadataTree, before: type[Operation[object]], meanwhile: Operation[object] | None
    ) -> None:
        self._tree = tree
        self._before = before
        self._meanwhile = meanwhile
        self._is_over = False
        self.submit = tree.submit

    async def run(self, operation: Operation[object]) -> object:
        if isinstance(operation, self._before) and not self._is_over:
            self._is_over = True
            await self._tree.run(self._meanwhile or operation)
        return await self._tree.run(operation)


@pytest.mark.parametrize(
    ("meanwhile", "code"),
    [("a_b", ErrorCode.TOPIC_ALREADY_EXISTS), ("a.b", ErrorCode.INVALID_TOPIC_EXCEPTION)],
)
@async_test
async def test_a_topic_that_is_created_meanwhile_does_not_collide_with_itself(meanwhile: str, code: ErrorCode) -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        admin = cluster.admin()
        data = topic_nodes.encode_topic(cluster.new_topic_id(), {0: ReplicaAssignment((0,))})
        admin._client.tree = _Meanwhile(cluster.client.tree, GetChildren, Create(znodes.topic_path(meanwhile), data))
        with pytest.raises(KafkaError) as refusal:
            await admin.validate_topic_create("a_b", {0: (0,)}, {})
        assert refusal.value.code is code


@async_test
async def test_partitions_are_added_to_what_the_topic_is_when_they_are_written() -> None:
    async with controller_cluster() as cluster:
        await cluster.start(0)
        topic_id = (await cluster.create("t", {0: [0]})).topic_id
        tree = cluster.client.tree

        async def add(count: int, meanwhile: SetData | None) -> ErrorCode:
            admin = cluster.admin()
            admin._client.tree = _Meanwhile(tree, SetData, meanwhile)
            request = CreatePartitionsTopic(name="t", count=count, assignments=None)
            recorded: list[int] = []
            results = await admin.create_partitions([request], timeout_ms=1000, record_mutations=recorded.append)
            assert recorded == [1]
            return results["t"].error_code

        assert await add(2, None) == ErrorCode.NONE
        await cluster.settle()
        moving = {0: ReplicaAssignment((0,)), 1: ReplicaAssignment((0, 7), (7,))}
        meanwhile = SetData(znodes.topic_path("t"), topic_nodes.encode_topic(topic_id, moving))
        assert await add(3, meanwhile) == ErrorCode.REASSIGNMENT_IN_PROGRESS
        (topic,) = await cluster.client.topic_assignments(["t"])
        assert topic.assignment == moving


@async_test
async def test_a_topic_whose_node_was_damaged_meanwhile_can_be_deleted() -> None:
    """The controller knows the topic. It is the way to get rid of such a node."""
    async with controller_cluster() as cluster:
        await cluster.start(0)
        await cluster.create("t", {0: [0]})
        await cluster.client.tree.run(SetData(znodes.topic_path("t"), b""))
        results = await cluster.admin().delete_topics(["t"], timeout_ms=1000)
        assert results["t"].is_success
        await cluster.settle()
        assert not await cluster.client.exists(znodes.topic_path("t"))
