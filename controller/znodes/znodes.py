"""Kafka's nodes in the metadata tree: all paths, and encoding and decoding of the smaller nodes.

`broker_node` and `topic_nodes` have the other values.

Encoders write the bytes of Apache Kafka 3.9, keys in the same order (that of Scala's hash maps); only partitions and
config keys are in ascending order. Decoders are tolerant, because older and newer brokers and ZooKeeper shells also
write these nodes: unknown keys are ignored, optional keys may be missing, and a node that is not JSON is decoded as in
Kafka (an empty topic, a partition without state). Where Kafka fails, `BadZnode` is raised.

Kafka: ZkData, ControllerZNode, ControllerEpochZNode, ClusterIdZNode, ConfigEntityZNode,
ConfigEntityChangeNotificationSequenceZNode, FeatureZNode, ProducerIdBlockZNode, IsrChangeNotificationSequenceZNode,
LogDirEventNotificationSequenceZNode, ReassignPartitionsZNode, PreferredReplicaElectionZNode, Sanitizer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, cast

from odradek.controller.znodes.znode_json import (
    BadZnode,
    Json,
    encode,
    int_in,
    ints,
    is_text,
    json_object,
    list_in,
    parse,
    partition_in,
    str_in,
)
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


class ProducerIdsBlock(NamedTuple):
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


def encode_entity_config(config: Mapping[str, str]) -> bytes:
    return encode({"version": 1, "config": dict(sorted(config.items()))})


def decode_entity_config(data: bytes | None) -> dict[str, str]:
    node = parse(data)
    config = node.get("config") if isinstance(node, dict) else None
    if not isinstance(config, dict):
        return {}
    if not all(is_text(text) for item in config.items() for text in item):
        bad = (name for name, value in config.items() if not (is_text(name) and is_text(value)))
        names = ", ".join(bad).encode(errors="replace").decode()
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
