"""The nodes of topics and partitions: `/brokers/topics/<topic>` and the state nodes of its partitions.

`znodes` has the rules of encoding and decoding.

Kafka: TopicZNode, TopicPartitionStateZNode.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from odradek.controller.model.leader_and_isr import LeaderAndIsr, LeaderIsrAndControllerEpoch, LeaderRecoveryState
from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.controller.znodes import znodes
from odradek.controller.znodes.topic_text import TopicText
from odradek.controller.znodes.znode_json import (
    BadZnode,
    Json,
    encode,
    int_in,
    ints,
    list_in,
    parse,
    str_in,
)
from odradek.protocol.codec.primitives import uuid_from_text


@dataclass(frozen=True, slots=True)
class TopicIdReplicaAssignment:
    """A topic node: the topic id, None for a topic of a Kafka before 2.8, and the replicas of every partition."""

    topic: str
    topic_id: bytes | None
    assignment: Mapping[int, ReplicaAssignment] = field(default_factory=dict)


def encode_topic(topic_id: bytes | None, assignment: Mapping[int, ReplicaAssignment]) -> bytes:
    return TopicText(topic_id, assignment).encode()


def decode_topic(topic: str, data: bytes | None) -> TopicIdReplicaAssignment:
    """A node of text that is not JSON has no id and no partitions. Raises: BadZnode for a node without any text, and
    for JSON that is not a topic.

    Kafka: TopicZNode.decode.
    """
    node = parse(data)
    path = znodes.topic_path(topic)
    if not isinstance(node, dict):
        if node is None and data is not None and data.strip() not in (b"", b"null"):
            return TopicIdReplicaAssignment(topic, None)
        raise BadZnode(f"{path} does not hold a JSON object: {data!r}")

    def replicas_in(key: str) -> dict[int, tuple[int, ...]]:
        lists = node.get(key, {})
        try:
            if not isinstance(lists, dict):
                raise TypeError(f"{lists!r} is not an object")
            partitions = ints([int(partition) for partition in lists])
            return dict(zip(partitions, map(ints, lists.values()), strict=True))
        except (TypeError, ValueError) as error:
            raise BadZnode(f"{path} has malformed {key}: {data!r}") from error

    partitions = replicas_in("partitions")
    adding = replicas_in("adding_replicas")
    removing = replicas_in("removing_replicas")
    try:
        topic_id = uuid_from_text(str_in(node, "topic_id")) if "topic_id" in node else None
    except ValueError as error:
        raise BadZnode(f"{path} has a malformed topic id: {error}") from error
    return TopicIdReplicaAssignment(
        topic,
        topic_id,
        {p: ReplicaAssignment(partitions[p], adding.get(p, ()), removing.get(p, ())) for p in sorted(partitions)},
    )


def encode_partition_state(state: LeaderIsrAndControllerEpoch) -> bytes:
    leadership = state.leader_and_isr
    node: dict[str, Json] = {
        "controller_epoch": state.controller_epoch,
        "leader": leadership.leader,
        "version": 1,
    }
    if leadership.leader_recovery_state is not LeaderRecoveryState.RECOVERED:
        node["leader_recovery_state"] = int(leadership.leader_recovery_state)
    node["leader_epoch"] = leadership.leader_epoch
    node["isr"] = list(leadership.isr)
    return encode(node)


def decode_partition_state(data: bytes | None, version: int) -> LeaderIsrAndControllerEpoch | None:
    """The leadership of a partition; `version`: the node's version, which is the partition epoch."""
    node = parse(data)
    if not isinstance(node, dict):
        return None
    try:
        recovery_state = LeaderRecoveryState(int_in(node, "leader_recovery_state", 0))
        isr = ints(list_in(node, "isr"))
    except (TypeError, ValueError) as error:
        raise BadZnode(f"malformed partition state: {data!r}") from error
    leadership = LeaderAndIsr(
        leader=int_in(node, "leader"),
        isr=isr,
        leader_epoch=int_in(node, "leader_epoch"),
        leader_recovery_state=recovery_state,
        partition_epoch=version,
    )
    return LeaderIsrAndControllerEpoch(leadership, int_in(node, "controller_epoch"))
