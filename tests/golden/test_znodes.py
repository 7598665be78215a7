"""What Apache Kafka writes into ZooKeeper, byte for byte, against what we write; znodes.json says what it was doing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from odradek.controller.model.broker_info import Broker
from odradek.controller.znodes import broker_node, topic_nodes, znodes
from odradek.protocol.topic_partition import TopicPartition
from tests.support.async_test import async_test
from tests.support.clusters.controller_cluster import controller_cluster

RECORDED: dict[str, dict[str, object]] = json.loads((Path(__file__).parent / "znodes.json").read_text())["znodes"]


def data_of(path: str) -> bytes:
    data = RECORDED[path]["data"]
    assert isinstance(data, str)
    return data.encode()


def test_registration() -> None:
    data = data_of("/brokers/ids/1")
    info = broker_node.decode_broker(1, data)
    assert info.broker == Broker(1, info.broker.end_points, "r1")
    assert broker_node.encode_broker(info, int(json.loads(data)["timestamp"])) == data


def test_controller() -> None:
    data = data_of("/controller")
    assert znodes.encode_controller(1, int(json.loads(data)["timestamp"])) == data
    assert znodes.encode_controller_epoch(1) == data_of("/controller_epoch")


def test_topics() -> None:
    data = data_of("/brokers/topics/alpha")
    topic = topic_nodes.decode_topic("alpha", data)
    assert sorted(topic.assignment) == list(range(5))
    assert topic_nodes.encode_topic(topic.topic_id, topic.assignment) == data
    # From 12 partitions on Scala's hash map has another order than ours; the value is the same.
    data = data_of("/brokers/topics/plain")
    topic = topic_nodes.decode_topic("plain", data)
    assert json.loads(topic_nodes.encode_topic(topic.topic_id, topic.assignment)) == json.loads(data)


def test_partition_states() -> None:
    for partition in (TopicPartition("alpha", 4), TopicPartition("plain", 11)):
        data = data_of(znodes.partition_state_path(partition))
        state = topic_nodes.decode_partition_state(data, 0)
        assert state is not None
        assert topic_nodes.encode_partition_state(state) == data


@pytest.mark.parametrize("entity", ["topics/alpha", "topics/plain", "brokers/1"])
def test_configs(entity: str) -> None:
    data = data_of(znodes.entity_config_path(entity))
    assert znodes.encode_entity_config(znodes.decode_entity_config(data)) == data


def test_config_changes() -> None:
    for number, entity in enumerate(("brokers/1", "topics/alpha")):
        assert znodes.encode_config_change(entity) == data_of(f"/config/changes/config_change_{number:010d}")


def test_other_nodes() -> None:
    assert znodes.encode_cluster_id(znodes.decode_cluster_id(data_of("/cluster/id"))) == data_of("/cluster/id")
    assert znodes.encode_feature() == data_of("/feature")
    block = znodes.decode_producer_ids_block(data_of("/latest_producer_id_block"))
    assert znodes.encode_producer_ids_block(block) == data_of("/latest_producer_id_block")


@async_test
async def test_a_whole_tree() -> None:
    """The same steps here leave the same nodes: paths, null data, versions, ephemerals."""
    async with controller_cluster() as cluster:
        controller = await cluster.start(1)
        await controller.client.create_recursive(znodes.CLUSTER_ID, znodes.encode_cluster_id("x" * 22))
        await cluster.create("plain", {partition: [1] for partition in range(12)})
        ours = {}
        for top in await controller.client.children("/"):
            for path in await controller.client.subtree(f"/{top}"):
                node = await controller.client.get(path)
                assert node is not None
                data = None if node.data is None else "data"
                ours[path] = (data, node.stat.version, node.stat.ephemeral_owner != 0)
    theirs = {
        path: (None if node["data"] is None else "data", node["version"], node["ephemeral"])
        for path, node in RECORDED.items()
        if "alpha" not in path and "config_change_" not in path and path not in ("/config/brokers/1", "/")
    }
    # A producer had drawn a block of ids.
    theirs["/latest_producer_id_block"] = (None, 0, False)
    assert {path: ours[path] for path in theirs} == theirs
    extra = {path for path in ours if path not in theirs and "/plain/partitions/" not in path}
    assert extra == set()
