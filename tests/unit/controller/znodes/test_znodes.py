from __future__ import annotations

import pytest

from odradek.controller.znodes import znodes
from odradek.controller.znodes.znode_json import BadZnode
from odradek.controller.znodes.znodes import ProducerIdsBlock
from odradek.protocol.topic_partition import TopicPartition


def test_paths() -> None:
    partition = TopicPartition("t", 3)
    assert znodes.broker_id_path(1) == "/brokers/ids/1"
    assert znodes.topic_path("t") == "/brokers/topics/t"
    assert znodes.partition_state_path(partition) == "/brokers/topics/t/partitions/3/state"
    assert znodes.delete_topic_path("t") == "/admin/delete_topics/t"
    assert znodes.entity_config_path("users/a/clients/<default>") == "/config/users/a/clients/<default>"


def test_sequence_numbers() -> None:
    assert znodes.sequence_number("config_change_0000000042", "config_change_") == 42
    assert znodes.sequence_number("config_change_x", "config_change_") == -1


def test_controller() -> None:
    data = znodes.encode_controller(1, 1795253599837)
    assert data == b'{"version":2,"brokerid":1,"timestamp":"1795253599837","kraftControllerEpoch":-1}'
    assert znodes.decode_controller(data) == (1, -1)
    assert znodes.decode_controller(b'{"version":1,"brokerid":7,"timestamp":"1"}') == (7, -1)
    assert znodes.encode_controller_epoch(12) == b"12"
    assert znodes.decode_controller_epoch(b"12") == 12
    with pytest.raises(BadZnode):
        znodes.decode_controller_epoch(None)


def test_cluster_id() -> None:
    data = znodes.encode_cluster_id("QG4EukaFQHG-brA8f_6h1g")
    assert data == b'{"version":"1","id":"QG4EukaFQHG-brA8f_6h1g"}'
    assert znodes.decode_cluster_id(data) == "QG4EukaFQHG-brA8f_6h1g"


def test_entity_configs() -> None:
    data = znodes.encode_entity_config({"b": "2", "a": "1"})
    assert data == b'{"version":1,"config":{"a":"1","b":"2"}}'
    assert znodes.decode_entity_config(data) == {"a": "1", "b": "2"}
    assert znodes.decode_entity_config(None) == {}
    assert znodes.decode_entity_config(b'{"version":1}') == {}
    with pytest.raises(BadZnode):
        znodes.decode_entity_config(b'{"config":{"a":1}}')


def test_config_changes() -> None:
    data = znodes.encode_config_change("topics/t")
    assert data == b'{"version":2,"entity_path":"topics/t"}'
    assert znodes.decode_config_change(data) == "topics/t"
    assert znodes.decode_config_change(b'{"version":1,"entity_type":"clients","entity_name":"c"}') == "clients/c"
    for bad in (
        b'{"version":1,"entity_type":"users","entity_name":"u"}',
        b'{"version":2,"entity_path":"topics"}',
        b'{"version":3,"entity_path":"topics/t"}',
        b"",
    ):
        with pytest.raises(BadZnode):
            znodes.decode_config_change(bad)


def test_features() -> None:
    assert znodes.encode_feature() == b'{"features":{},"version":2,"status":1}'
    assert znodes.decode_feature(b'{"version":2,"status":0,"features":{"f":{"max_version_level":3}}}') == (0, {"f": 3})


def test_producer_ids() -> None:
    block = ProducerIdsBlock(1, 0, 999)
    data = znodes.encode_producer_ids_block(block)
    assert data == b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}'
    assert znodes.decode_producer_ids_block(data) == block
    assert block.size == 1000
    with pytest.raises(BadZnode):
        znodes.decode_producer_ids_block(b'{"broker":1,"block_start":"a","block_end":"b"}')


def test_partition_lists() -> None:
    partitions = (TopicPartition("t", 0), TopicPartition("u", 1))
    data = znodes.encode_partitions(partitions)
    assert data == b'{"version":1,"partitions":[{"topic":"t","partition":0},{"topic":"u","partition":1}]}'
    assert znodes.decode_partitions(data) == partitions
    assert znodes.decode_partitions(b"junk") == ()


def test_reassignments() -> None:
    data = znodes.encode_reassignment({TopicPartition("t", 0): (1, 2)})
    assert data == b'{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[1,2]}]}'
    assert znodes.decode_reassignment(data) == {TopicPartition("t", 0): (1, 2)}
    with pytest.raises(BadZnode):
        znodes.decode_reassignment(b"junk")


def test_log_dir_events() -> None:
    assert znodes.decode_log_dir_event(b'{"version":1,"broker":4,"event":1}') == 4
    assert znodes.decode_log_dir_event(None) is None


@pytest.mark.parametrize(
    ("name", "node"), [("alice", "alice"), ("CN=a b,O=*", "CN%3Da%20b%2CO%3D%2A"), ("ä~+", "%C3%A4%7E%2B")]
)
def test_sanitized_names(name: str, node: str) -> None:
    assert znodes.sanitize(name) == node
    assert znodes.desanitize(node) == name
