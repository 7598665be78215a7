"""Kafka's nodes in the metadata tree: their paths, and encoding and decoding of their values.

Encoders write the bytes of Apache Kafka 3.9, keys in the same order (that of Scala's hash maps); only partitions and
config keys are in ascending order. Decoders are tolerant, because older and newer brokers and ZooKeeper shells also
write these nodes: unknown keys are ignored, optional keys may be missing, and a node that is not JSON is decoded as in
Kafka (an empty topic, a partition without state). Where Kafka fails, `BadZnode` is raised.

Kafka: ZkData, ControllerZNode, ControllerEpochZNode, BrokerIdZNode, TopicZNode, TopicPartitionStateZNode,
ConfigEntityZNode, ConfigEntityChangeNotificationSequenceZNode, FeatureZNode, ProducerIdBlockZNode,
IsrChangeNotificationSequenceZNode, LogDirEventNotificationSequenceZNode, ReassignPartitionsZNode,
PreferredReplicaElectionZNode, Sanitizer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from odradek.controller.model.broker_info import Broker, BrokerInfo, EndPoint, SecurityProtocol
from odradek.controller.model.leader_and_isr import LeaderAndIsr, LeaderIsrAndControllerEpoch, LeaderRecoveryState
from odradek.controller.model.reassignment import ReplicaAssignment
from odradek.controller.znodes.znode_json import (
    BadZnode,
    Json,
    encode,
    int_in,
    ints,
    json_object,
    list_in,
    parse,
    partition_in,
    str_in,
)
from odradek.protocol.codec.primitives import uuid_from_text, uuid_to_text
from odradek.protocol.topic_partition import TopicPartition

ADMIN: Final = "/admin"
BROKER_IDS: Final = "/brokers/ids"
BROKER_SEQUENCE_ID: Final = "/brokers/seqid"
CLUSTER_ID: Final = "/cluster/id"
CONFIG_CHANGES: Final = "/config/changes"
CONFIG_CHANGE_PREFIX: Final = "config_change_"
CONTROLLER: Final = "/controller"
CONTROLLER_EPOCH: Final = "/controller_epoch"
DELETE_TOPICS: Final = "/admin/delete_topics"
FEATURE: Final = "/feature"
FEATURE_DISABLED: Final = 0
FEATURE_ENABLED: Final = 1

PRODUCER_IDS_BLOCK_SIZE: Final = 1000

FIRST_REGISTRATION_WITH_RACK: Final = 3
FIRST_REGISTRATION_WITH_LISTENERS: Final = 4
FIRST_REGISTRATION_WITH_FEATURES: Final = 5
ISR_CHANGE_NOTIFICATION: Final = "/isr_change_notification"
LATEST_PRODUCER_ID_BLOCK: Final = "/latest_producer_id_block"
LOG_DIR_EVENT_NOTIFICATION: Final = "/log_dir_event_notification"
LOG_DIR_EVENT_PREFIX: Final = "log_dir_event_"
PREFERRED_REPLICA_ELECTION: Final = "/admin/preferred_replica_election"
REASSIGN_PARTITIONS: Final = "/admin/reassign_partitions"
TOPICS: Final = "/brokers/topics"

PERSISTENT_PATHS: Final = (
    "/consumers",
    BROKER_IDS,
    TOPICS,
    CONFIG_CHANGES,
    DELETE_TOPICS,
    BROKER_SEQUENCE_ID,
    ISR_CHANGE_NOTIFICATION,
    LATEST_PRODUCER_ID_BLOCK,
    LOG_DIR_EVENT_NOTIFICATION,
    "/config/topics",
    "/config/clients",
    "/config/users",
    "/config/brokers",
    "/config/ips",
)
"""The nodes that every broker creates when it starts, in Kafka's order. Kafka: ZkData.PersistentZkPaths."""

SEQUENTIAL_PARENTS: Final = (
    CONFIG_CHANGES,
    ISR_CHANGE_NOTIFICATION,
    LOG_DIR_EVENT_NOTIFICATION,
    "/kafka-acl-changes",
    "/kafka-acl-extended-changes",
    "/delegation_token/token_changes",
)
"""The parents of sequential nodes."""

TOP_LEVEL_NAMES: Final = frozenset(
    {path.split("/")[1] for path in (*PERSISTENT_PATHS, *SEQUENTIAL_PARENTS)}
    | {"cluster", "controller", "controller_epoch", "feature", "kafka-acl", "kafka-acl-extended", "migration"}
)
"""Kafka's nodes below the root; other applications may use the same ZooKeeper."""

DEFAULT_ENTITY: Final = "<default>"

_END_POINT = re.compile(r"([^:]+)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")


@dataclass(frozen=True, slots=True)
class TopicIdReplicaAssignment:
    """A topic node: the topic id, None for a topic of a Kafka before 2.8, and the replicas of every partition."""

    topic: str
    topic_id: bytes | None
    assignment: Mapping[int, ReplicaAssignment] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProducerIdsBlock:
    """Producer ids from `block_start` up to and including `block_end`, allocated to one broker."""

    broker: int
    block_start: int
    block_end: int

    @property
    def size(self) -> int:
        return self.block_end - self.block_start + 1


# Paths


def broker_id_path(broker_id: int) -> str:
    return f"{BROKER_IDS}/{broker_id}"


def topic_path(topic: str) -> str:
    return f"{TOPICS}/{topic}"


def topic_partitions_path(topic: str) -> str:
    return f"{TOPICS}/{topic}/partitions"


def partition_path(partition: TopicPartition) -> str:
    return f"{TOPICS}/{partition.topic}/partitions/{partition.partition}"


def partition_state_path(partition: TopicPartition) -> str:
    return partition_path(partition) + "/state"


def delete_topic_path(topic: str) -> str:
    return f"{DELETE_TOPICS}/{topic}"


def entity_config_path(entity_path: str) -> str:
    """The config node of an entity path such as `topics/t` or `users/alice/clients/<default>`."""
    return f"/config/{entity_path}"


def sequence_number(name: str, prefix: str) -> int:
    """The number of a sequential node; -1 for a name that is not one."""
    digits = name.removeprefix(prefix)
    return int(digits) if digits.isascii() and digits.isdigit() else -1


# Values


def encode_controller(broker_id: int, timestamp_ms: int) -> bytes:
    return encode(
        {"version": 2, "brokerid": broker_id, "timestamp": str(timestamp_ms), "kraftControllerEpoch": -1},
    )


def decode_controller(data: bytes | None) -> tuple[int, int]:
    """The controller's broker id and its KRaft epoch (-1 for a ZooKeeper controller)."""
    node = json_object(data, CONTROLLER)
    return int_in(node, "brokerid"), int_in(node, "kraftControllerEpoch", -1)


def encode_controller_epoch(epoch: int) -> bytes:
    return str(epoch).encode()


def decode_controller_epoch(data: bytes | None) -> int:
    try:
        return int((data or b"").decode("ascii"))
    except ValueError as error:
        raise BadZnode(f"{CONTROLLER_EPOCH} holds {data!r}") from error


def encode_cluster_id(cluster_id: str) -> bytes:
    return encode({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes | None) -> str:
    return str_in(json_object(data, CLUSTER_ID), "id")


def encode_broker(info: BrokerInfo, timestamp_ms: int) -> bytes:
    """A registration. `host` and `port` are those of the first plaintext endpoint, for readers of version 1.

    Version 2 has no rack and no listener protocols, version 4 no features.
    """
    broker = info.broker
    plaintext = next((p for p in broker.end_points if p.security_protocol is SecurityProtocol.PLAINTEXT), None)
    protocols: dict[str, Json] = {p.listener_name: p.security_protocol.name for p in broker.end_points}
    node: dict[str, Json] = {}
    if info.version >= FIRST_REGISTRATION_WITH_FEATURES:
        node["features"] = {}
    if info.version >= FIRST_REGISTRATION_WITH_LISTENERS:
        node["listener_security_protocol_map"] = protocols
    node["endpoints"] = [point.connection_string for point in broker.end_points]
    if broker.rack is not None and info.version >= FIRST_REGISTRATION_WITH_RACK:
        node["rack"] = broker.rack
    node |= {
        "jmx_port": info.jmx_port,
        "port": -1 if plaintext is None else plaintext.port,
        "host": None if plaintext is None else plaintext.host,
        "version": info.version,
        "timestamp": str(timestamp_ms),
    }
    return encode(node)


def decode_broker(broker_id: int, data: bytes | None) -> BrokerInfo:
    """A registration of any version. Raises BadZnode for one without valid endpoints."""
    path = broker_id_path(broker_id)
    node = json_object(data, path)
    version = int_in(node, "version")
    if version < 1:
        raise BadZnode(f"Unsupported version of broker registration: {data!r}")
    if version == 1:
        protocol = SecurityProtocol.PLAINTEXT
        end_points: tuple[EndPoint, ...] = (
            EndPoint(str_in(node, "host"), int_in(node, "port"), protocol.name, protocol),
        )
    else:
        protocols = node.get("listener_security_protocol_map")
        names = cast("dict[str, str]", protocols) if isinstance(protocols, dict) else {}
        end_points = tuple(_end_point(str(text), names, path) for text in list_in(node, "endpoints"))
    rack = node.get("rack")
    return BrokerInfo(
        broker=Broker(broker_id, end_points, rack if isinstance(rack, str) else None),
        jmx_port=int_in(node, "jmx_port", -1),
        version=version,
    )


def _end_point(text: str, protocols: Mapping[str, str], path: str) -> EndPoint:
    match = _END_POINT.fullmatch(text)
    if match is None:
        raise BadZnode(f"{path} has the malformed endpoint {text!r}")
    listener = match[1].upper()
    try:
        return EndPoint(match[2], int(match[3]), listener, SecurityProtocol[protocols.get(listener, listener)])
    except KeyError as error:
        raise BadZnode(f"{path} has no security protocol for the listener {listener}") from error


def encode_topic(topic_id: bytes | None, assignment: Mapping[int, ReplicaAssignment]) -> bytes:
    def listed(replicas_of: Mapping[int, tuple[int, ...]]) -> dict[str, Json]:
        return {str(partition): list(replicas_of[partition]) for partition in sorted(replicas_of)}

    node: dict[str, Json] = {"partitions": listed({p: a.replicas for p, a in assignment.items()})}
    if topic_id is not None:
        node["topic_id"] = uuid_to_text(topic_id)
    node["adding_replicas"] = listed({p: a.adding_replicas for p, a in assignment.items() if a.adding_replicas})
    node["removing_replicas"] = listed({p: a.removing_replicas for p, a in assignment.items() if a.removing_replicas})
    node["version"] = 3
    return encode(node)


def decode_topic(topic: str, data: bytes | None) -> TopicIdReplicaAssignment:
    node = parse(data)
    if not isinstance(node, dict):
        return TopicIdReplicaAssignment(topic, None)
    path = topic_path(topic)

    def replicas_in(key: str) -> dict[int, tuple[int, ...]]:
        lists = node.get(key)
        if not isinstance(lists, dict):
            return {}
        try:
            return {int(partition): ints(replicas) for partition, replicas in lists.items()}
        except (TypeError, ValueError) as error:
            raise BadZnode(f"{path} has malformed {key}: {data!r}") from error

    partitions = replicas_in("partitions")
    adding = replicas_in("adding_replicas")
    removing = replicas_in("removing_replicas")
    text = node.get("topic_id")
    try:
        topic_id = uuid_from_text(text) if isinstance(text, str) else None
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


def encode_entity_config(config: Mapping[str, str]) -> bytes:
    return encode({"version": 1, "config": dict(sorted(config.items()))})


def decode_entity_config(data: bytes | None) -> dict[str, str]:
    node = parse(data)
    config = node.get("config") if isinstance(node, dict) else None
    if not isinstance(config, dict):
        return {}
    if not all(isinstance(value, str) for value in config.values()):
        names = ", ".join(name for name, value in config.items() if not isinstance(value, str))
        raise BadZnode(f"values that are not strings: {names}")  # without the values, which may be secrets
    return cast("dict[str, str]", config)


def encode_config_change(entity_path: str) -> bytes:
    return encode({"version": 2, "entity_path": entity_path})


def decode_config_change(data: bytes | None) -> str:
    """The entity path of a change. Version 1 has entity type and name in two fields, for topics and clients only."""
    node = json_object(data, CONFIG_CHANGES)
    match int_in(node, "version", 2):
        case 1:
            entity_type = str_in(node, "entity_type")
            if entity_type not in ("topics", "clients"):
                raise BadZnode(f"a version 1 config change cannot be about {entity_type}: {data!r}")
            return f"{entity_type}/{str_in(node, 'entity_name')}"
        case 2:
            entity_path = str_in(node, "entity_path")
            if "/" not in entity_path:
                raise BadZnode(f"malformed entity path in a config change: {data!r}")
            return entity_path
        case version:
            raise BadZnode(f"unknown version {version} of a config change: {data!r}")


def encode_feature(levels: Mapping[str, int] = {}, *, version: int = 2, status: int = FEATURE_ENABLED) -> bytes:
    """The finalized level of each feature; version 1 writes it as a range with equal ends."""
    names = ("max_version_level", "min_version_level")[: 2 if version == 1 else 1]
    features: dict[str, Json] = {feature: dict.fromkeys(names, level) for feature, level in levels.items()}
    return encode({"features": features, "version": version, "status": status})


def decode_feature(data: bytes | None) -> tuple[int, dict[str, int]]:
    """The status (1 is enabled) and the finalized level of each feature."""
    node = json_object(data, FEATURE)
    features = node.get("features")
    levels: dict[str, int] = {}
    for name, value in features.items() if isinstance(features, dict) else ():
        level = value.get("max_version_level") if isinstance(value, dict) else value
        if isinstance(level, int):
            levels[name] = level
    return int_in(node, "status"), levels


def encode_producer_ids_block(block: ProducerIdsBlock) -> bytes:
    return encode(
        {
            "version": 1,
            "broker": block.broker,
            "block_start": str(block.block_start),
            "block_end": str(block.block_end),
        }
    )


def decode_producer_ids_block(data: bytes | None) -> ProducerIdsBlock:
    node = json_object(data, LATEST_PRODUCER_ID_BLOCK)
    try:
        return ProducerIdsBlock(
            int_in(node, "broker"), int(str_in(node, "block_start")), int(str_in(node, "block_end"))
        )
    except ValueError as error:
        raise BadZnode(f"{LATEST_PRODUCER_ID_BLOCK} holds {data!r}") from error


def encode_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    """The partitions of an ISR change notification or of the preferred replica election."""
    return encode({"version": 1, "partitions": [{"topic": p.topic, "partition": p.partition} for p in partitions]})


def decode_partitions(data: bytes | None) -> tuple[TopicPartition, ...]:
    node = parse(data)
    if not isinstance(node, dict):
        return ()
    return tuple(partition_in(item) for item in list_in(node, "partitions"))


def encode_reassignment(targets: Mapping[TopicPartition, Iterable[int]]) -> bytes:
    return encode(
        {
            "version": 1,
            "partitions": [
                {"topic": p.topic, "partition": p.partition, "replicas": list(replicas)}
                for p, replicas in targets.items()
            ],
        }
    )


def decode_reassignment(data: bytes | None) -> dict[TopicPartition, tuple[int, ...]]:
    node = json_object(data, REASSIGN_PARTITIONS)
    targets: dict[TopicPartition, tuple[int, ...]] = {}
    for item in list_in(node, "partitions"):
        partition = partition_in(item)
        try:
            targets[partition] = ints(list_in(cast("dict[str, Json]", item), "replicas"))
        except (TypeError, ValueError) as error:
            raise BadZnode(f"malformed replicas of {partition}: {data!r}") from error
    return targets


def encode_log_dir_event(broker_id: int) -> bytes:
    """The event that a log directory of the broker has failed; Kafka has no other event here."""
    return encode({"version": 1, "broker": broker_id, "event": 1})


def decode_log_dir_event(data: bytes | None) -> int | None:
    """The id of the broker with the failed log directory; None if the node is not JSON."""
    node = parse(data)
    return int_in(node, "broker") if isinstance(node, dict) else None


def sanitize(name: str) -> str:
    """A user, client or token name as a node name: percent-encoded. Kafka: Sanitizer.sanitize."""
    from urllib.parse import quote

    return quote(name, safe="-._").replace("~", "%7E")


def desanitize(name: str) -> str:
    from urllib.parse import unquote_plus

    return unquote_plus(name)
