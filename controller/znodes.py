"""Kafka's nodes in the metadata tree: their paths, and values to and from their bytes.

Encoders write what Apache Kafka 3.9 writes, key for key in its order (which is the order of Scala's hash maps, and
which nobody depends on); only the order of partitions and of config keys is ours: ascending. Decoders are tolerant,
for the other writers are older and newer brokers and people with a ZooKeeper shell: unknown keys are ignored,
optional ones may be missing, and a node that is no JSON at all reads as Kafka reads it (an empty topic, a partition
without state); where Kafka fails, `BadZnode` is raised.

Answers to kafka.zk.ZkData.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast
from urllib.parse import quote, unquote_plus

from odradek.controller.broker_info import Broker, BrokerInfo, EndPoint, SecurityProtocol
from odradek.controller.leader_and_isr import LeaderAndIsr, LeaderIsrAndControllerEpoch, LeaderRecoveryState
from odradek.controller.reassignment import ReplicaAssignment
from odradek.protocol.primitives import uuid_from_text, uuid_to_text
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
FEATURE_ENABLED: Final = 1
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
"""What every broker creates when it starts, in Kafka's order."""

DEFAULT_ENTITY: Final = "<default>"

_END_POINT = re.compile(r"([^:]+)://\[?([0-9a-zA-Z\-%._:]*)\]?:(-?[0-9]+)")

_Json: TypeAlias = "dict[str, _Json] | list[_Json] | str | int | float | bool | None"


class BadZnode(Exception):
    """A node's bytes are not what they must be."""


@dataclass(frozen=True, slots=True)
class TopicIdReplicaAssignment:
    """A topic node: its id, absent in topics of before Kafka 2.8, and every partition's replicas."""

    topic: str
    topic_id: bytes | None
    assignment: Mapping[int, ReplicaAssignment] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ProducerIdsBlock:
    """Producer ids from `block_start` up to and including `block_end`, given to one broker."""

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
    """The number of a sequential node; -1 for a name that is none."""
    digits = name.removeprefix(prefix)
    return int(digits) if digits.isascii() and digits.isdigit() else -1


# Values


def encode_controller(broker_id: int, timestamp_ms: int) -> bytes:
    return _encode(
        {"version": 2, "brokerid": broker_id, "timestamp": str(timestamp_ms), "kraftControllerEpoch": -1},
    )


def decode_controller(data: bytes | None) -> tuple[int, int]:
    """The controller's broker id and its KRaft epoch (-1 for a ZooKeeper controller)."""
    node = _object(data, CONTROLLER)
    return _int(node, "brokerid"), _int(node, "kraftControllerEpoch", -1)


def encode_controller_epoch(epoch: int) -> bytes:
    return str(epoch).encode()


def decode_controller_epoch(data: bytes | None) -> int:
    try:
        return int((data or b"").decode("ascii"))
    except ValueError as error:
        raise BadZnode(f"{CONTROLLER_EPOCH} holds {data!r}") from error


def encode_cluster_id(cluster_id: str) -> bytes:
    return _encode({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes | None) -> str:
    return _str(_object(data, CLUSTER_ID), "id")


def encode_broker(info: BrokerInfo, timestamp_ms: int) -> bytes:
    """A registration, version 5. `host` and `port` are those of the first plaintext endpoint, for very old readers."""
    broker = info.broker
    plaintext = next((p for p in broker.end_points if p.security_protocol is SecurityProtocol.PLAINTEXT), None)
    protocols: dict[str, _Json] = {p.listener_name: p.security_protocol.name for p in broker.end_points}
    node: dict[str, _Json] = {
        "features": {},
        "listener_security_protocol_map": protocols,
        "endpoints": [point.connection_string for point in broker.end_points],
        "jmx_port": info.jmx_port,
        "port": -1 if plaintext is None else plaintext.port,
        "host": None if plaintext is None else plaintext.host,
        "version": 5,
        "timestamp": str(timestamp_ms),
    }
    if broker.rack is not None:
        node = {**dict(list(node.items())[:3]), "rack": broker.rack, **dict(list(node.items())[3:])}
    return _encode(node)


def decode_broker(broker_id: int, data: bytes | None) -> BrokerInfo:
    """Any version of a registration; raises BadZnode for one that names no place to connect to."""
    path = broker_id_path(broker_id)
    node = _object(data, path)
    version = _int(node, "version")
    if version < 1:
        raise BadZnode(f"Unsupported version of broker registration: {data!r}")
    if version == 1:
        protocol = SecurityProtocol.PLAINTEXT
        end_points: tuple[EndPoint, ...] = (EndPoint(_str(node, "host"), _int(node, "port"), protocol.name, protocol),)
    else:
        protocols = node.get("listener_security_protocol_map")
        names = cast("dict[str, str]", protocols) if isinstance(protocols, dict) else {}
        end_points = tuple(_end_point(str(text), names, path) for text in _list(node, "endpoints"))
    rack = node.get("rack")
    return BrokerInfo(
        broker=Broker(broker_id, end_points, rack if isinstance(rack, str) else None),
        jmx_port=_int(node, "jmx_port", -1),
    )


def _end_point(text: str, protocols: Mapping[str, str], path: str) -> EndPoint:
    match = _END_POINT.fullmatch(text)
    if match is None:
        raise BadZnode(f"{path} names the endpoint {text!r}")
    listener = match[1].upper()
    try:
        return EndPoint(match[2], int(match[3]), listener, SecurityProtocol[protocols.get(listener, listener)])
    except KeyError as error:
        raise BadZnode(f"{path} gives no security protocol for the listener {listener}") from error


def encode_topic(topic_id: bytes | None, assignment: Mapping[int, ReplicaAssignment]) -> bytes:
    def listed(replicas_of: Mapping[int, tuple[int, ...]]) -> dict[str, _Json]:
        return {str(partition): list(replicas_of[partition]) for partition in sorted(replicas_of)}

    node: dict[str, _Json] = {"partitions": listed({p: a.replicas for p, a in assignment.items()})}
    if topic_id is not None:
        node["topic_id"] = uuid_to_text(topic_id)
    node["adding_replicas"] = listed({p: a.adding_replicas for p, a in assignment.items() if a.adding_replicas})
    node["removing_replicas"] = listed({p: a.removing_replicas for p, a in assignment.items() if a.removing_replicas})
    node["version"] = 3
    return _encode(node)


def decode_topic(topic: str, data: bytes | None) -> TopicIdReplicaAssignment:
    node = _parse(data)
    if not isinstance(node, dict):
        return TopicIdReplicaAssignment(topic, None)
    path = topic_path(topic)

    def replicas_in(key: str) -> dict[int, tuple[int, ...]]:
        lists = node.get(key)
        if not isinstance(lists, dict):
            return {}
        try:
            return {int(partition): _ints(replicas) for partition, replicas in lists.items()}
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
    node: dict[str, _Json] = {
        "controller_epoch": state.controller_epoch,
        "leader": leadership.leader,
        "version": 1,
    }
    if leadership.leader_recovery_state is not LeaderRecoveryState.RECOVERED:
        node["leader_recovery_state"] = int(leadership.leader_recovery_state)
    node["leader_epoch"] = leadership.leader_epoch
    node["isr"] = list(leadership.isr)
    return _encode(node)


def decode_partition_state(data: bytes | None, version: int) -> LeaderIsrAndControllerEpoch | None:
    """A partition's leadership; the version of the node is its partition epoch."""
    node = _parse(data)
    if not isinstance(node, dict):
        return None
    try:
        recovery_state = LeaderRecoveryState(_int(node, "leader_recovery_state", 0))
        isr = _ints(_list(node, "isr"))
    except (TypeError, ValueError) as error:
        raise BadZnode(f"malformed partition state: {data!r}") from error
    leadership = LeaderAndIsr(
        leader=_int(node, "leader"),
        isr=isr,
        leader_epoch=_int(node, "leader_epoch"),
        leader_recovery_state=recovery_state,
        partition_epoch=version,
    )
    return LeaderIsrAndControllerEpoch(leadership, _int(node, "controller_epoch"))


def encode_entity_config(config: Mapping[str, str]) -> bytes:
    return _encode({"version": 1, "config": dict(sorted(config.items()))})


def decode_entity_config(data: bytes | None) -> dict[str, str]:
    node = _parse(data)
    config = node.get("config") if isinstance(node, dict) else None
    if not isinstance(config, dict):
        return {}
    if not all(isinstance(value, str) for value in config.values()):
        raise BadZnode(f"a config value is not a string: {data!r}")
    return cast("dict[str, str]", config)


def encode_config_change(entity_path: str) -> bytes:
    return _encode({"version": 2, "entity_path": entity_path})


def decode_config_change(data: bytes | None) -> str:
    """The entity path that changed. Version 1 named the type and the entity apart, and knew topics and clients only."""
    node = _object(data, CONFIG_CHANGES)
    match _int(node, "version", 2):
        case 1:
            entity_type = _str(node, "entity_type")
            if entity_type not in ("topics", "clients"):
                raise BadZnode(f"a version 1 config change cannot be about {entity_type}: {data!r}")
            return f"{entity_type}/{_str(node, 'entity_name')}"
        case 2:
            entity_path = _str(node, "entity_path")
            if "/" not in entity_path:
                raise BadZnode(f"malformed entity path in a config change: {data!r}")
            return entity_path
        case version:
            raise BadZnode(f"unknown version {version} of a config change: {data!r}")


def encode_feature() -> bytes:
    """Enabled and empty: brokers in ZooKeeper mode finalise no features."""
    return _encode({"features": {}, "version": 2, "status": 1})


def decode_feature(data: bytes | None) -> tuple[int, dict[str, int]]:
    """The status (1 is enabled) and the finalised versions by feature."""
    node = _object(data, FEATURE)
    features = node.get("features")
    levels: dict[str, int] = {}
    for name, value in features.items() if isinstance(features, dict) else ():
        level = value.get("max_version_level") if isinstance(value, dict) else value
        if isinstance(level, int):
            levels[name] = level
    return _int(node, "status"), levels


def encode_producer_ids_block(block: ProducerIdsBlock) -> bytes:
    return _encode(
        {
            "version": 1,
            "broker": block.broker,
            "block_start": str(block.block_start),
            "block_end": str(block.block_end),
        }
    )


def decode_producer_ids_block(data: bytes | None) -> ProducerIdsBlock:
    node = _object(data, LATEST_PRODUCER_ID_BLOCK)
    try:
        return ProducerIdsBlock(_int(node, "broker"), int(_str(node, "block_start")), int(_str(node, "block_end")))
    except ValueError as error:
        raise BadZnode(f"{LATEST_PRODUCER_ID_BLOCK} holds {data!r}") from error


def encode_partitions(partitions: Iterable[TopicPartition]) -> bytes:
    """The list in ISR change notifications and in the preferred replica election."""
    return _encode({"version": 1, "partitions": [{"topic": p.topic, "partition": p.partition} for p in partitions]})


def decode_partitions(data: bytes | None) -> tuple[TopicPartition, ...]:
    node = _parse(data)
    if not isinstance(node, dict):
        return ()
    return tuple(_partition(item) for item in _list(node, "partitions"))


def encode_reassignment(targets: Mapping[TopicPartition, Iterable[int]]) -> bytes:
    return _encode(
        {
            "version": 1,
            "partitions": [
                {"topic": p.topic, "partition": p.partition, "replicas": list(replicas)}
                for p, replicas in targets.items()
            ],
        }
    )


def decode_reassignment(data: bytes | None) -> dict[TopicPartition, tuple[int, ...]]:
    node = _object(data, REASSIGN_PARTITIONS)
    targets: dict[TopicPartition, tuple[int, ...]] = {}
    for item in _list(node, "partitions"):
        partition = _partition(item)
        try:
            targets[partition] = _ints(_list(cast("dict[str, _Json]", item), "replicas"))
        except (TypeError, ValueError) as error:
            raise BadZnode(f"malformed replicas of {partition}: {data!r}") from error
    return targets


def decode_log_dir_event(data: bytes | None) -> int | None:
    """The broker that lost a log directory."""
    node = _parse(data)
    return _int(node, "broker") if isinstance(node, dict) else None


def sanitize(name: str) -> str:
    """A user, client or token name as a node name: percent-encoded, as Kafka's Sanitizer does it."""
    return quote(name, safe="-._").replace("~", "%7E")


def desanitize(name: str) -> str:
    return unquote_plus(name)


# JSON


def _encode(node: dict[str, _Json]) -> bytes:
    return json.dumps(node, separators=(",", ":"), ensure_ascii=False).encode()


def _parse(data: bytes | None) -> _Json:
    """The JSON value, or None for what is no JSON."""
    if not data:
        return None
    try:
        return cast("_Json", json.loads(data))
    except ValueError:
        return None


def _object(data: bytes | None, path: str) -> dict[str, _Json]:
    node = _parse(data)
    if not isinstance(node, dict):
        raise BadZnode(f"{path} holds no JSON object: {data!r}")
    return node


def _int(node: Mapping[str, _Json], key: str, default: int | None = None) -> int:
    value = node.get(key, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadZnode(f"{key} is {value!r}, not a number")
    return value


def _str(node: Mapping[str, _Json], key: str) -> str:
    value = node.get(key)
    if not isinstance(value, str):
        raise BadZnode(f"{key} is {value!r}, not a string")
    return value


def _list(node: Mapping[str, _Json], key: str) -> list[_Json]:
    value = node.get(key)
    if not isinstance(value, list):
        raise BadZnode(f"{key} is {value!r}, not a list")
    return value


def _ints(value: _Json) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(isinstance(item, int) for item in value):
        raise TypeError(f"{value!r} is no list of numbers")
    return tuple(cast("list[int]", value))


def _partition(item: _Json) -> TopicPartition:
    if not isinstance(item, dict):
        raise BadZnode(f"{item!r} is no partition")
    return TopicPartition(_str(item, "topic"), _int(item, "partition"))
