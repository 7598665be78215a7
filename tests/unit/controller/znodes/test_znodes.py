from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.controller.model.broker_info import Broker, BrokerInfo, EndPoint, SecurityProtocol
from odradek.controller.model.leader_and_isr import LeaderAndIsr, LeaderIsrAndControllerEpoch, LeaderRecoveryState
from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.controller.znodes import znodes
from odradek.controller.znodes.znode_json import BadZnode
from odradek.controller.znodes.znodes import ProducerIdsBlock, TopicIdReplicaAssignment
from odradek.protocol.topic_partition import TopicPartition

TOPIC_ID = bytes(range(16))
PLAINTEXT = EndPoint("h", 9092, "PLAINTEXT", SecurityProtocol.PLAINTEXT)
SSL = EndPoint("h", 9093, "SECURE", SecurityProtocol.SSL)
INTS = st.lists(st.integers(0, 9), max_size=4, unique=True).map(tuple)


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


def test_registration() -> None:
    info = BrokerInfo(broker=Broker(3, (SSL, PLAINTEXT), "r1"))
    data = znodes.encode_broker(info, 1700000000000)
    assert json.loads(data) == {
        "version": 5,
        "host": "h",
        "port": 9092,
        "jmx_port": -1,
        "timestamp": "1700000000000",
        "endpoints": ["SECURE://h:9093", "PLAINTEXT://h:9092"],
        "listener_security_protocol_map": {"SECURE": "SSL", "PLAINTEXT": "PLAINTEXT"},
        "rack": "r1",
        "features": {},
    }
    assert znodes.decode_broker(3, data) == info


def test_registrations_that_older_brokers_understand() -> None:
    for version, absent in (
        (5, set()),
        (4, {"features"}),
        (2, {"features", "listener_security_protocol_map", "rack"}),
    ):
        broker = Broker(3, (PLAINTEXT,), None if version == 2 else "r1")
        info = BrokerInfo(broker=Broker(3, (PLAINTEXT,), "r1"), version=version)
        data = znodes.encode_broker(info, 1)
        keys = {"version", "host", "port", "jmx_port", "timestamp", "endpoints", "listener_security_protocol_map"}
        assert json.loads(data).keys() == (keys | {"rack", "features"}) - absent
        assert znodes.decode_broker(3, data) == BrokerInfo(broker=broker, version=version)


def test_registration_without_rack_and_plaintext() -> None:
    info = BrokerInfo(broker=Broker(3, (SSL,)))
    data = znodes.encode_broker(info, 1)
    node = json.loads(data)
    assert "rack" not in node
    assert (node["host"], node["port"]) == (None, -1)
    assert znodes.decode_broker(3, data) == info


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "fe80::1%eth0", "host-1.example.com", ""])
def test_endpoint_hosts(host: str) -> None:
    point = EndPoint(host, 1, "PLAINTEXT", SecurityProtocol.PLAINTEXT)
    info = BrokerInfo(broker=Broker(1, (point,)))
    assert znodes.decode_broker(1, znodes.encode_broker(info, 1)) == info


def test_registrations_of_old_versions() -> None:
    v1 = b'{"version":1,"host":"old","port":9092,"jmx_port":9999,"timestamp":"2233345666"}'
    assert znodes.decode_broker(1, v1).broker.end_points == (
        EndPoint("old", 9092, "PLAINTEXT", SecurityProtocol.PLAINTEXT),
    )
    v2 = b'{"version":2,"host":"a","port":1,"jmx_port":-1,"timestamp":"1","endpoints":["SSL://a:2"],"new":[]}'
    assert znodes.decode_broker(1, v2).broker.end_points == (EndPoint("a", 2, "SSL", SecurityProtocol.SSL),)


@pytest.mark.parametrize(
    "data",
    [
        None,
        b"",
        b"junk",
        b"[]",
        b'{"version":0}',
        b'{"version":5,"endpoints":["nonsense"]}',
        b'{"version":5,"endpoints":["OTHER://h:1"],"listener_security_protocol_map":{}}',
        b'{"version":5,"endpoints":"PLAINTEXT://h:1"}',
    ],
)
def test_bad_registrations(data: bytes | None) -> None:
    with pytest.raises(BadZnode):
        znodes.decode_broker(1, data)


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


@given(
    topic_id=st.none() | st.binary(min_size=16, max_size=16),
    assignment=st.dictionaries(st.integers(0, 20), st.builds(ReplicaAssignment, INTS, INTS, INTS), max_size=12),
)
def test_topics_survive_the_tree(topic_id: bytes | None, assignment: dict[int, ReplicaAssignment]) -> None:
    data = znodes.encode_topic(topic_id, assignment)
    assert znodes.decode_topic("t", data) == TopicIdReplicaAssignment("t", topic_id, assignment)


def test_topics_of_old_versions_and_junk() -> None:
    v1 = b'{"version":1,"partitions":{"0":[1,2]}}'
    assert znodes.decode_topic("t", v1) == TopicIdReplicaAssignment("t", None, {0: ReplicaAssignment((1, 2))})
    assert znodes.decode_topic("t", None) == TopicIdReplicaAssignment("t", None)
    assert znodes.decode_topic("t", b"junk") == TopicIdReplicaAssignment("t", None)
    for bad in (b'{"partitions":{"x":[1]}}', b'{"partitions":{"0":1}}', b'{"topic_id":"short","partitions":{}}'):
        with pytest.raises(BadZnode):
            znodes.decode_topic("t", bad)


def test_partition_state() -> None:
    state = LeaderIsrAndControllerEpoch(LeaderAndIsr(leader=1, isr=(1, 2), leader_epoch=4, partition_epoch=8), 3)
    data = znodes.encode_partition_state(state)
    assert data == b'{"controller_epoch":3,"leader":1,"version":1,"leader_epoch":4,"isr":[1,2]}'
    assert znodes.decode_partition_state(data, 8) == state


def test_partition_state_of_an_unclean_leader() -> None:
    leadership = LeaderAndIsr(leader=1, isr=(1,), leader_recovery_state=LeaderRecoveryState.RECOVERING)
    state = LeaderIsrAndControllerEpoch(leadership, 1)
    data = znodes.encode_partition_state(state)
    assert json.loads(data)["leader_recovery_state"] == 1
    assert znodes.decode_partition_state(data, 0) == state


def test_partition_states_that_are_none() -> None:
    assert znodes.decode_partition_state(None, 0) is None
    assert znodes.decode_partition_state(b"", 0) is None
    with pytest.raises(BadZnode):
        znodes.decode_partition_state(b'{"leader":1}', 0)


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
