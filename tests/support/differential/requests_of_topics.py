"""Random requests about topics, their configs and offsets in them; most are valid."""

from __future__ import annotations

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Response
from tests.support.differential.choices import Choices
from tests.support.differential.steps import Known, Step
from tests.support.wire.requests import OLD

SPECIAL_TIMESTAMPS = (-1, -2, -3, -4, -5, -6, 0, OLD, OLD + 2, OLD + 60)
CONFIGS = {
    "cleanup.policy": ("delete", "compact", "compact,delete", "burn"),
    "compression.type": ("producer", "uncompressed", "none"),
    "max.message.bytes": ("200", "1048588", "-1"),
    "message.downconversion.enable": ("true", "false"),
    "message.timestamp.type": ("CreateTime", "createtime"),  # the broker's time would differ inside of old records
    "message.timestamp.before.max.ms": ("1000", "9223372036854775807"),
    "min.insync.replicas": ("1", "2", "0"),
    "segment.bytes": ("1000", "1048576", "13", "x"),
    "no.such.key": ("1",),
}


def create_topics(c: Choices) -> Step:
    configs = [{"name": name, "value": value} for name, value in c.configs(CONFIGS, c.pick(0, 0, 1, 2))]
    topic = {
        "name": c.topic(),
        "num_partitions": c.pick(1, 2, 3, 3, -1, 0),
        "replication_factor": c.pick(1, 1, 1, 1, -1, 2),
        "configs": configs,
    }
    if c.chance(0.1):
        assigned = [{"partition_index": index, "broker_ids": [0]} for index in c.pick((0,), (0, 1), (1, 2), (0, 0))]
        topic = {"name": topic["name"], "num_partitions": -1, "replication_factor": -1, "assignments": assigned}
    fields = {"topics": [topic], "timeout_ms": 8000, "validate_only": c.chance(0.1)}
    return Step(ApiKey.CREATE_TOPICS, c.version(ApiKey.CREATE_TOPICS), lambda _: fields, changes_topics=True)


def delete_topics(c: Choices) -> Step:
    name, by_id = c.topic(), c.chance(0.3)

    def fields(known: Known) -> dict[str, object]:
        state = {"name": None, "topic_id": known.topic_ids.get(name, b"\x07" * 16)} if by_id else {"name": name}
        return {"topic_names": [name], "topics": [state], "timeout_ms": 8000}

    return Step(ApiKey.DELETE_TOPICS, c.version(ApiKey.DELETE_TOPICS), fields, changes_topics=True)


def create_partitions(c: Choices) -> Step:
    assignments = [{"broker_ids": [0]}] * c.pick(1, 2) if c.chance(0.3) else None
    topic = {"name": c.topic(), "count": c.pick(2, 3, 4, 0), "assignments": assignments}
    fields = {"topics": [topic], "timeout_ms": 8000, "validate_only": c.chance(0.2)}
    return Step(ApiKey.CREATE_PARTITIONS, c.version(ApiKey.CREATE_PARTITIONS), lambda _: fields, changes_topics=True)


def metadata(c: Choices) -> Step:
    fields = {"topics": [{"name": c.topic()}], "allow_auto_topic_creation": False}
    return Step(ApiKey.METADATA, c.version(ApiKey.METADATA, first=4), lambda _: fields)


def describe_configs(c: Choices) -> Step:
    names = c.pick(None, [], [name for name, _ in c.configs(CONFIGS, 3)])
    resource = {"resource_type": 2, "resource_name": c.topic(), "configuration_keys": names}
    fields = {"resources": [resource], "include_synonyms": c.chance(0.5)}
    return Step(ApiKey.DESCRIBE_CONFIGS, c.version(ApiKey.DESCRIBE_CONFIGS), lambda _: fields)


def alter_configs(c: Choices) -> Step:
    changes = [
        {"name": name, "value": value, "config_operation": c.pick(0, 0, 0, 1, 2, 3)}
        for name, value in c.configs(CONFIGS, c.pick(1, 1, 2))
    ]
    resource = {"resource_type": 2, "resource_name": c.topic(), "configs": changes}
    fields = {"resources": [resource], "validate_only": True}  # the effect of a change comes behind the answer
    return Step(ApiKey.INCREMENTAL_ALTER_CONFIGS, c.version(ApiKey.INCREMENTAL_ALTER_CONFIGS), lambda _: fields)


def list_offsets(c: Choices) -> Step:
    asked = {
        "partition_index": c.partition(),
        "timestamp": c.pick(*SPECIAL_TIMESTAMPS),
        "current_leader_epoch": c.pick(-1, -1, 0, 1),
        "max_num_offsets": c.pick(1, 3),
    }
    topics = [{"name": c.topic(), "partitions": [asked]}]
    fields = {"replica_id": -1, "isolation_level": c.pick(0, 1), "topics": topics}
    return Step(ApiKey.LIST_OFFSETS, c.version(ApiKey.LIST_OFFSETS), lambda _: fields)


def offset_for_leader_epoch(c: Choices) -> Step:
    asked = {"partition": c.partition(), "current_leader_epoch": c.pick(-1, 0, 1), "leader_epoch": c.pick(0, 1, -1)}
    fields = {"replica_id": -1, "topics": [{"topic": c.topic(), "partitions": [asked]}]}
    return Step(ApiKey.OFFSET_FOR_LEADER_EPOCH, c.version(ApiKey.OFFSET_FOR_LEADER_EPOCH), lambda _: fields)


def delete_records(c: Choices) -> Step:
    asked = {"partition_index": c.partition(), "offset": c.pick(-1, 0, 1, 2, 3, 1000, -2)}
    fields = {"timeout_ms": 3000, "topics": [{"name": c.topic(), "partitions": [asked]}]}
    return Step(ApiKey.DELETE_RECORDS, c.version(ApiKey.DELETE_RECORDS), lambda _: fields)


def fetch(c: Choices) -> Step:
    name, version = c.topic(), c.version(ApiKey.FETCH)
    asked = {
        "partition": c.partition(),
        "fetch_offset": c.pick(0, 0, 1, 2, 3, 5, 1000, -1),
        "partition_max_bytes": c.pick(1 << 20, 1 << 20, 100, 0),
        "current_leader_epoch": c.pick(-1, -1, -1, 0, 1),
        "last_fetched_epoch": c.pick(-1, -1, 0, 1),
    }
    begins, goes_on = c.chance(0.2), c.chance(0.3)
    isolation_level, max_bytes, is_empty = c.pick(0, 1), c.pick(1 << 20, 200, 0, -1), c.chance(0.4)

    def fields(known: Known) -> dict[str, object]:
        topics = [{"topic": name, "topic_id": known.topic_ids.get(name, b"\x07" * 16), "partitions": [asked]}]
        fields = {"max_wait_ms": 0, "min_bytes": 0, "max_bytes": max_bytes, "isolation_level": isolation_level}
        if begins:
            return {**fields, "session_epoch": 0, "topics": topics}
        if goes_on and known.sessions:
            session_id, epoch = known.sessions[-1]
            topics = [] if is_empty else topics
            return {**fields, "session_id": session_id, "session_epoch": epoch, "topics": topics}
        return {**fields, "topics": topics}

    def learn(known: Known, response: Response) -> None:
        session_id = getattr(response, "session_id", 0)
        if version < 7 or not session_id:
            return
        if known.sessions and known.sessions[-1][0] == session_id:
            known.sessions[-1] = (session_id, known.sessions[-1][1] + 1)
        else:
            known.sessions[:] = [*known.sessions[-2:], (session_id, 1)]

    return Step(ApiKey.FETCH, version, fields, learn)
