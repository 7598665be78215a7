from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.controller.model.leader_and_isr import LeaderAndIsr, LeaderIsrAndControllerEpoch, LeaderRecoveryState
from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.controller.znodes import topic_nodes
from odradek.controller.znodes.topic_nodes import TopicIdReplicaAssignment
from odradek.controller.znodes.znode_json import BadZnode

INTS = st.lists(st.integers(0, 9), max_size=4, unique=True).map(tuple)


@given(
    topic_id=st.none() | st.binary(min_size=16, max_size=16),
    assignment=st.dictionaries(st.integers(0, 20), st.builds(ReplicaAssignment, INTS, INTS, INTS), max_size=12),
)
def test_topics_survive_the_tree(topic_id: bytes | None, assignment: dict[int, ReplicaAssignment]) -> None:
    data = topic_nodes.encode_topic(topic_id, assignment)
    assert topic_nodes.decode_topic("t", data) == TopicIdReplicaAssignment("t", topic_id, assignment)


def test_topics_of_old_versions_and_junk() -> None:
    v1 = b'{"version":1,"partitions":{"0":[1,2]}}'
    assert topic_nodes.decode_topic("t", v1) == TopicIdReplicaAssignment("t", None, {0: ReplicaAssignment((1, 2))})
    assert topic_nodes.decode_topic("t", b"junk") == TopicIdReplicaAssignment("t", None)
    for bad in (
        b'{"partitions":{"x":[1]}}',
        b'{"partitions":{"0":1}}',
        b'{"partitions":{"2147483648":[1]}}',
        b'{"partitions":{"0":[2147483648]}}',
        b'{"topic_id":"short","partitions":{}}',
        b'{"topic_id":1,"partitions":{}}',
        b'{"partitions":[]}',
        b'{"partitions":{"0":[1]},"adding_replicas":null}',
        None,
        b"",
        b" ",
        b"null",
        b"[]",
    ):
        with pytest.raises(BadZnode):
            topic_nodes.decode_topic("t", bad)


def test_partition_state() -> None:
    state = LeaderIsrAndControllerEpoch(LeaderAndIsr(leader=1, isr=(1, 2), leader_epoch=4, partition_epoch=8), 3)
    data = topic_nodes.encode_partition_state(state)
    assert data == b'{"controller_epoch":3,"leader":1,"version":1,"leader_epoch":4,"isr":[1,2]}'
    assert topic_nodes.decode_partition_state(data, 8) == state


def test_partition_state_of_an_unclean_leader() -> None:
    leadership = LeaderAndIsr(leader=1, isr=(1,), leader_recovery_state=LeaderRecoveryState.RECOVERING)
    state = LeaderIsrAndControllerEpoch(leadership, 1)
    data = topic_nodes.encode_partition_state(state)
    assert json.loads(data)["leader_recovery_state"] == 1
    assert topic_nodes.decode_partition_state(data, 0) == state


def test_partition_states_that_are_none() -> None:
    assert topic_nodes.decode_partition_state(None, 0) is None
    assert topic_nodes.decode_partition_state(b"", 0) is None
    with pytest.raises(BadZnode):
        topic_nodes.decode_partition_state(b'{"leader":1}', 0)
