from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager

import pytest

from odradek.controller.model.controller_moved import ControllerMoved
from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.controller.tree.metadata_tree import Create, Delete, NoNode, SetData
from odradek.controller.znodes import topic_nodes, topic_text, znodes
from odradek.controller.znodes.metadata_client import (
    OPERATIONS_PER_BATCH_MAX,
    MetadataClient,
    submit_all,
)
from odradek.controller.znodes.topic_nodes import TopicIdReplicaAssignment
from odradek.controller.znodes.znode_json import BadZnode
from odradek.controller.znodes.znodes import ProducerIdsBlock
from odradek.protocol.topic_partition import TopicPartition
from tests.support.async_test import async_test
from tests.support.in_process import metadata_client


def opened() -> AbstractAsyncContextManager[MetadataClient]:
    return metadata_client.opened(nodes={znodes.CONTROLLER_EPOCH: b"1"})


@async_test
async def test_a_fenced_write_needs_the_current_token() -> None:
    async with opened() as client:
        await client.write(0, Create("/a", b""))
        with pytest.raises(ControllerMoved):
            await client.write(1, SetData("/a", b"x"))
        await client.tree.run(Delete(znodes.CONTROLLER_EPOCH))
        with pytest.raises(ControllerMoved):
            await client.write(0, SetData("/a", b"x"))
        node = await client.get("/a")
        assert node is not None
        assert node.data == b""


@async_test
async def test_creating_with_parents() -> None:
    async with opened() as client:
        await client.create_recursive("/a/b/c", b"data")
        await client.create_recursive("/a/b/c", b"other")
        assert await client.datas(["/a", "/a/b", "/a/b/c", "/none"]) == [None, None, b"data", None]
        await client.create_all(["/a/x/y", "/a/b/c", "/z"])
        assert await client.subtree("/a") == ["/a", "/a/b", "/a/x", "/a/b/c", "/a/x/y"]
        assert await client.exists("/z")


@async_test
async def test_deleting_with_children() -> None:
    async with opened() as client:
        await client.create_all(["/a/b/c", "/a/b/d", "/a/e", "/ab"])
        await client.delete_recursive("/a", 0)
        assert not await client.exists("/a")
        assert await client.exists("/ab")
        await client.delete_recursive("/a", 0)


@async_test
async def test_deletion_copes_with_somebody_writing_below() -> None:
    async with opened() as client:
        await client.create_all(["/a/b"])
        original = client.subtree
        seen: list[str] = []

        async def subtree(path: str) -> list[str]:
            found = await original(path)
            if not seen:
                await client.create_recursive("/a/b/late")
            seen.append(path)
            return found

        client.subtree = subtree
        await client.delete_recursive("/a", 0)
        assert len(seen) == 2
        assert not await client.exists("/a")


@async_test
async def test_reading_what_is_not_there() -> None:
    async with opened() as client:
        assert await client.children("/none") == ()
        assert await client.get("/none") is None
        assert await client.controller() is None
        assert await client.broker(1) is None
        assert await client.brokers_and_epochs() == {}
        assert await client.topic_assignments(["none"]) == []
        assert await client.entity_config("topics/none") == {}
        assert await client.preferred_replica_election() == ()
        assert await client.partition_reassignment() == {}


@async_test
async def test_topics() -> None:
    async with opened() as client:
        assignment = {0: ReplicaAssignment((1, 2))}
        await client.create_recursive(znodes.topic_path("t"), topic_nodes.encode_topic(None, {}))
        await client.set_topic_assignment("t", b"i" * 16, assignment, 0)
        (topic,) = await client.topic_assignments({"t", "u"})
        assert (topic.topic_id, topic.assignment) == (b"i" * 16, assignment)
        await client.change_topic_assignment("t", {1: ReplicaAssignment((3,))}, 0)
        (topic,) = await client.topic_assignments({"t"})
        assert (topic.topic_id, topic.assignment) == (b"i" * 16, {**assignment, 1: ReplicaAssignment((3,))})
        assert await client.topic_partition_counts({"t", "u"}) == {"t": 2}
        await client.tree.run(SetData(znodes.topic_path("t"), topic_nodes.encode_topic(None, topic.assignment)))
        await client.change_topic_assignment("t", {1: ReplicaAssignment((2,))}, 0, b"j" * 16)
        await client.change_topic_assignment("t", {1: ReplicaAssignment((4,))}, 0, b"k" * 16)
        (topic,) = await client.topic_assignments({"t"})
        assert (topic.topic_id, topic.assignment[1]) == (b"j" * 16, ReplicaAssignment((4,)))
        with pytest.raises(ControllerMoved):
            await client.change_topic_assignment("t", assignment, 7)
        with pytest.raises(NoNode):
            await client.change_topic_assignment("u", assignment, 0)
        assert await client.topics() == {"t"}
        await client.create_all(["/brokers/topics/t/partitions/0/state", "/config/topics/t", "/admin/delete_topics/t"])
        await client.delete_topic("t", 0)
        for path in ("/brokers/topics/t", "/config/topics/t", "/admin/delete_topics/t"):
            assert not await client.exists(path)


@async_test
async def test_the_reassignment_node_is_made_when_needed() -> None:
    async with opened() as client:
        for targets in ({TopicPartition("t", 0): (1,)}, {TopicPartition("t", 1): (2,)}):
            await client.set_or_create_partition_reassignment(targets, 0)
            assert await client.partition_reassignment() == targets


@async_test
async def test_producer_id_blocks_follow_each_other_even_in_a_race() -> None:
    async with opened() as client:
        await client.create_recursive(znodes.LATEST_PRODUCER_ID_BLOCK)
        assert await client.next_producer_ids_block(1, 1000) == ProducerIdsBlock(1, 0, 999)
        original = client.tree.run

        async def run_after_somebody_else(operation: object) -> object:
            if isinstance(operation, SetData):
                client.tree.run = original
                await MetadataClient(client.tree).next_producer_ids_block(2, 1000)
            return await original(operation)

        client.tree.run = run_after_somebody_else
        assert await client.next_producer_ids_block(1, 1000) == ProducerIdsBlock(1, 2000, 2999)


@pytest.mark.parametrize("data", [b"", b"null", b"junk"])
@async_test
async def test_no_producer_ids_are_given_out_after_a_block_that_cannot_be_read(data: bytes) -> None:
    async with opened() as client:
        await client.create_recursive(znodes.LATEST_PRODUCER_ID_BLOCK, data)
        with pytest.raises(BadZnode, match="latest_producer_id_block"):
            await client.next_producer_ids_block(1, 1000)
        node = await client.get(znodes.LATEST_PRODUCER_ID_BLOCK)
        assert node is not None
        assert node.data == data


@pytest.mark.parametrize(("operations", "batches"), [(0, 0), (1000, 1), (1001, 2)])
@async_test
async def test_long_lists_of_operations_are_cut(operations: int, batches: int) -> None:
    class Tree:
        submitted = 0

        async def submit(self, batch: list[object]) -> list[object]:
            assert len(batch) <= OPERATIONS_PER_BATCH_MAX
            self.submitted += 1
            return list(batch)

    tree = Tree()
    assert await submit_all(tree, list(range(operations))) == list(range(operations))
    assert tree.submitted == batches


@async_test
async def test_partitions_that_are_changed_one_by_one_have_the_node_of_their_topic_decoded_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    decoded: list[bytes | None] = []
    decode_topic = topic_nodes.decode_topic

    def noted(topic: str, data: bytes | None) -> TopicIdReplicaAssignment:
        decoded.append(data)
        return decode_topic(topic, data)

    monkeypatch.setattr(topic_nodes, "decode_topic", noted)
    async with opened() as client:
        await client.create_recursive(znodes.TOPICS)
        data = topic_nodes.encode_topic(bytes(16), {partition: ReplicaAssignment((1,)) for partition in range(9)})
        await client.tree.run(Create(znodes.topic_path("t"), data))
        for partition in range(9):
            await client.change_topic_assignment("t", {partition: ReplicaAssignment((1, 2), (2,), (1,))}, 0)
            (known,) = await client.topic_assignments(["t"])
            node = await client.get(znodes.topic_path("t"))
            assert node is not None
            assert known == decode_topic("t", node.data)
        assert (len(decoded), node.stat.version) == (1, 9)
        await client.tree.run(
            SetData(znodes.topic_path("t"), topic_nodes.encode_topic(None, {0: ReplicaAssignment((3,))}))
        )
        await client.change_topic_assignment("t", {1: ReplicaAssignment((4,))}, 0)
        (known,) = await client.topic_assignments(["t"])
        assert known.assignment == {0: ReplicaAssignment((3,)), 1: ReplicaAssignment((4,))}, "somebody else has written"


@pytest.mark.parametrize("data", [b"junk", b"", b"[]", b'{"version":3}', b'{"partitions":{"1":[2]}}'])
@async_test
async def test_partitions_that_the_node_has_lost_are_written_again(data: bytes) -> None:
    known = {partition: ReplicaAssignment((1, 2)) for partition in range(3)}
    async with opened() as client:
        await client.create_recursive(znodes.topic_path("t"), data)
        await client.change_topic_assignment("t", {1: ReplicaAssignment((3,))}, 0, b"i" * 16, known)
        node = await client.get(znodes.topic_path("t"))
        assert node is not None
        found = topic_nodes.decode_topic("t", node.data)
        assert found == TopicIdReplicaAssignment("t", b"i" * 16, {**known, 1: ReplicaAssignment((3,))})
        assert list(found.assignment) == [0, 1, 2]


@async_test
async def test_partitions_of_a_topic_that_do_not_change_are_encoded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[int] = []
    entry = topic_text._entry

    def noted(partition: int, replicas: Sequence[int]) -> str:
        encoded.append(partition)
        return entry(partition, replicas)

    async with opened() as client:
        await client.create_recursive(znodes.TOPICS)
        data = topic_nodes.encode_topic(bytes(16), {partition: ReplicaAssignment((1,)) for partition in range(100)})
        await client.tree.run(Create(znodes.topic_path("t"), data))
        monkeypatch.setattr(topic_text, "_entry", noted)
        for partition in range(10):
            await client.change_topic_assignment("t", {partition: ReplicaAssignment((2, 1), (2,), (1,))}, 0)
        assert len(encoded) == 100 + 10 * len(("replicas", "adding", "removing"))
        with pytest.raises(ControllerMoved):
            await client.change_topic_assignment("t", {3: ReplicaAssignment((9,))}, 7)
        await client.change_topic_assignment("t", {4: ReplicaAssignment((8,))}, 0)
        (known,) = await client.topic_assignments(["t"])
        assert known.assignment[3] == ReplicaAssignment((2, 1), (2,), (1,)), "the change was refused"
        assert known.assignment[4] == ReplicaAssignment((8,))
