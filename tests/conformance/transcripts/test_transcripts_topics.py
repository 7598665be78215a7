"""What Apache Kafka answers about topics: metadata, creation, deletion, partitions, and who coordinates what."""

from __future__ import annotations

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.codec.schema import Request
from tests.support.transcripts.transcript import Transcript
from tests.support.wire.requests import build

pytestmark = pytest.mark.oracle

BAD_NAMES = ("", ".", "..", "a b", "a/b", "é", "a\x00b", "x" * 250)


def create_request(*topics: dict[str, object], **fields: object) -> Request:
    defaults = {"num_partitions": 1, "replication_factor": 1}
    return build(
        ApiKey.CREATE_TOPICS, **{"topics": [{**defaults, **t} for t in topics], "timeout_ms": 10_000, **fields}
    )


def create(t: Transcript, stem: str, partitions: int = 1) -> tuple[str, bytes]:
    topic = t.name(stem)
    answer = t.quietly(create_request({"name": topic, "num_partitions": partitions}), 7)
    return topic, answer.topics[0].topic_id


def metadata(*names: str, **fields: object) -> Request:
    return build(ApiKey.METADATA, topics=[{"name": name} for name in names], **fields)


def test_metadata(transcript: Transcript) -> None:
    t = transcript
    topic, topic_id = create(t, "known", 3)
    t.sweep("known", range(13), lambda _: metadata(topic))
    missing = t.name("missing")
    t.sweep("missing, not to be created", range(4, 13), lambda _: metadata(missing, allow_auto_topic_creation=False))
    for version in (0, 3, 4, 12):
        t.call(f"missing, created v{version}", metadata(t.name(f"auto-{version}")), version)
    for name in BAD_NAMES:
        for version in (0, 8, 12):
            t.call(
                f"{name!r} v{version}",
                metadata(name, **({"allow_auto_topic_creation": False} if version > 3 else {})),
                version,
            )
    t.call("the same topic twice", metadata(topic, topic), 8)
    t.call("a known and a missing one", metadata(topic, missing, allow_auto_topic_creation=False), 8)
    t.call("operations of a topic", metadata(topic, include_topic_authorized_operations=True), 8)
    t.call("operations of the cluster", metadata(topic, include_cluster_authorized_operations=True), 10)
    t.call("internal topic", metadata("__consumer_offsets"), 8)
    for version in (10, 12):
        for label, which in {
            "by id": {"topic_id": topic_id, "name": None},
            "by unknown id": {"topic_id": b"\x07" * 16, "name": None},
            "by zero id and null name": {"topic_id": bytes(16), "name": None},
            "by id and name": {"topic_id": topic_id, "name": topic},
        }.items():
            t.call(f"{label} v{version}", build(ApiKey.METADATA, topics=[which]), version)
    t.sweep("no topics", range(1, 13), lambda _: build(ApiKey.METADATA, topics=[]))
    answer = t.quietly(build(ApiKey.METADATA, topics=None), 12)
    t.note("all topics", sorted(n.name == topic for n in answer.topics if n.name in (topic, missing)))
    answer = t.quietly(build(ApiKey.METADATA, topics=[]), 0)
    t.note("v0: an empty list is all", [n.name == topic for n in answer.topics if n.name in (topic, missing)])


def test_create_topics(transcript: Transcript) -> None:
    t = transcript
    t.sweep("created", range(8), lambda v: create_request({"name": t.name(f"new-{v}"), "num_partitions": 2}))
    existing, _ = create(t, "existing")
    t.sweep("exists", range(8), lambda _: create_request({"name": existing}))
    t.sweep("validated only", range(1, 8), lambda v: create_request({"name": t.name(f"dry-{v}")}, validate_only=True))
    t.call("validated: exists", create_request({"name": existing}, validate_only=True), 7)
    for name in BAD_NAMES:
        t.call(f"named {name!r}", create_request({"name": name}, validate_only=True), 7)
    longest = t.hide(t.name("long").ljust(249, "x"), "longest")
    t.call("the longest name", create_request({"name": longest}, validate_only=True), 7)
    t.call("internal", create_request({"name": "__consumer_offsets"}), 7)
    dotted = t.name("dots.and_underscores")
    t.call("a name", create_request({"name": dotted}), 7)
    colliding = t.hide(dotted.replace(".", "_"), "dots_and_underscores")
    t.call("a colliding name", create_request({"name": colliding}), 7)
    cases: dict[str, dict[str, object]] = {
        "0 partitions": {"num_partitions": 0},
        "-2 partitions": {"num_partitions": -2},
        "default partitions": {"num_partitions": -1},
        "0 replicas": {"replication_factor": 0},
        "-2 replicas": {"replication_factor": -2},
        "default replicas": {"replication_factor": -1},
        "2 replicas": {"replication_factor": 2},
        "unknown config": {"configs": [{"name": "no.such.config", "value": "1"}]},
        "bad config value": {"configs": [{"name": "segment.bytes", "value": "many"}]},
        "config below its minimum": {"configs": [{"name": "segment.bytes", "value": "1"}]},
        "bad cleanup policy": {"configs": [{"name": "cleanup.policy", "value": "burn"}]},
        "null config": {"configs": [{"name": "segment.bytes", "value": None}]},
        "empty config name": {"configs": [{"name": "", "value": "1"}]},
        "config twice": {
            "configs": [{"name": "segment.bytes", "value": "20000"}, {"name": "segment.bytes", "value": "30000"}]
        },
        "good configs": {
            "configs": [{"name": "retention.ms", "value": "7"}, {"name": "compression.type", "value": "lz4"}]
        },
    }
    manual = {"num_partitions": -1, "replication_factor": -1}
    for label, assignments in {
        "assigned": [(0, [0]), (1, [0])],
        "assigned to an unknown broker": [(0, [7])],
        "assigned twice to a broker": [(0, [0, 0])],
        "assigned from partition 1": [(1, [0])],
        "a partition assigned twice": [(0, [0]), (0, [0])],
        "assigned to nobody": [(0, [])],
        "unequal assignment": [(0, [0]), (1, [0, 0])],
    }.items():
        given = [{"partition_index": partition, "broker_ids": brokers} for partition, brokers in assignments]
        cases[label] = {**manual, "assignments": given}
    cases["assigned and counted"] = {"num_partitions": 1, "assignments": [{"partition_index": 0, "broker_ids": [0]}]}
    for number, (label, case) in enumerate(cases.items()):
        # An assignment to a broker that is not there is taken, and then nobody leads: the answer waits in vain.
        wait = {"timeout_ms": 300 if label in ("assigned to an unknown broker", "assigned to nobody") else 10_000}
        t.call(label, create_request({"name": t.name(f"case-{number}"), **case}, **wait), 7)
        t.call(f"{label} (v0)", create_request({"name": t.name(f"old-{number}"), **case}, **wait), 0)
    twice = t.name("twice")
    t.call("one name twice", create_request({"name": twice}, {"name": twice}), 7)
    t.call("none", create_request(), 7)
    slow = t.name("slow")
    t.call("timeout 0", create_request({"name": slow}, timeout_ms=0), 7)


def test_delete_topics(transcript: Transcript) -> None:
    t = transcript

    def by_name(*names: str, version: int) -> Request:
        if version < 6:
            return build(ApiKey.DELETE_TOPICS, topic_names=list(names), timeout_ms=10_000)
        return build(ApiKey.DELETE_TOPICS, topics=[{"name": name} for name in names], timeout_ms=10_000)

    for version in range(7):
        topic, _ = create(t, f"topic-{version}")
        t.call(f"deleted v{version}", by_name(topic, version=version), version)
        t.call(f"deleted again v{version}", by_name(topic, version=version), version)
        t.call(f"metadata afterwards v{version}", metadata(topic, allow_auto_topic_creation=False), 8)
    topic, topic_id = create(t, "by-id")

    def by_state(label: str, **state: object) -> None:
        t.call(label, build(ApiKey.DELETE_TOPICS, topics=[state], timeout_ms=10_000), 6)

    by_state("name and id", name=topic, topic_id=topic_id)
    by_state("neither", name=None, topic_id=bytes(16))
    by_state("unknown id", name=None, topic_id=b"\x09" * 16)
    by_state("by id", name=None, topic_id=topic_id)
    by_state("empty name", name="")
    topic, topic_id = create(t, "twice")
    t.call("twice by name", by_name(topic, topic, version=6), 6)
    t.call("twice by name, old", by_name(topic, topic, version=5), 5)
    topic, topic_id = create(t, "both")
    mixed = [{"name": topic}, {"name": None, "topic_id": topic_id}]
    t.call("by name and by id", build(ApiKey.DELETE_TOPICS, topics=mixed, timeout_ms=10_000), 6)
    t.call("none", by_name(version=6), 6)
    t.call("none, old", by_name(version=3), 3)


def test_create_partitions(transcript: Transcript) -> None:
    t = transcript
    topic, _ = create(t, "growing", 2)
    missing = t.name("missing")

    def grow(label: str, name: str, count: int, version: int = 3, **fields: object) -> None:
        in_topic = {"assignments": fields.pop("assignments")} if "assignments" in fields else {"assignments": None}
        topics = [{"name": name, "count": count, **in_topic}]
        t.call(label, build(ApiKey.CREATE_PARTITIONS, **{"topics": topics, "timeout_ms": 10_000, **fields}), version)

    for version in range(4):
        grow(f"to {3 + version} v{version}", topic, 3 + version, version)
    t.call("metadata", metadata(topic), 8)
    grow("as many", topic, 6)
    grow("fewer", topic, 2)
    grow("none", topic, 0)
    grow("negative", topic, -1)
    grow("unknown topic", missing, 3)
    grow("empty name", "", 3)
    grow("validated only", topic, 9, validate_only=True)
    grow("assigned", topic, 7, assignments=[{"broker_ids": [0]}])
    grow("assigned too many", topic, 8, assignments=[{"broker_ids": [0]}, {"broker_ids": [0]}])
    grow("assigned too few", topic, 9, assignments=[{"broker_ids": [0]}])
    grow("assigned to nobody", topic, 8, assignments=[{"broker_ids": []}])
    grow("assigned to an unknown broker", topic, 8, assignments=[{"broker_ids": [9]}])
    grow("assigned two replicas", topic, 8, assignments=[{"broker_ids": [0, 0]}])
    grow("timeout 0", topic, 8, timeout_ms=0)
    same = [{"name": topic, "count": 10, "assignments": None}] * 2
    t.call("the topic twice", build(ApiKey.CREATE_PARTITIONS, topics=same, timeout_ms=1000), 3)
    t.call("no topics", build(ApiKey.CREATE_PARTITIONS, timeout_ms=1000), 3)


def test_find_coordinator(transcript: Transcript) -> None:
    t = transcript
    for version in range(7):
        for key_type in (0,) if version == 0 else (0, 1, 2, 7):
            kind = {"key_type": key_type} if version else {}
            if version < 4:
                request = build(ApiKey.FIND_COORDINATOR, key="some", **kind)
            else:
                request = build(ApiKey.FIND_COORDINATOR, coordinator_keys=["some", "", "other", "some"], **kind)
            t.call(f"type {key_type} v{version}", request, version)
    t.call("empty group v0", build(ApiKey.FIND_COORDINATOR, key=""), 0)
    t.call("empty group v3", build(ApiKey.FIND_COORDINATOR, key=""), 3)
    t.call("no keys", build(ApiKey.FIND_COORDINATOR), 4)


def test_describe_cluster(transcript: Transcript) -> None:
    t = transcript
    t.sweep("plain", range(2), lambda _: build(ApiKey.DESCRIBE_CLUSTER))
    t.call("operations", build(ApiKey.DESCRIBE_CLUSTER, include_cluster_authorized_operations=True), 1)
    t.call("controllers", build(ApiKey.DESCRIBE_CLUSTER, endpoint_type=2), 1)
    t.call("endpoint type 9", build(ApiKey.DESCRIBE_CLUSTER, endpoint_type=9), 1)


def test_api_versions(transcript: Transcript) -> None:
    t = transcript
    client = {"client_software_name": "name", "client_software_version": "1.0"}
    t.sweep("plain", range(5), lambda v: build(ApiKey.API_VERSIONS, **(client if v > 2 else {})))
    for name in ("", "-a", "a-", "a b", "a.b", "é"):
        t.call(f"software name {name!r}", build(ApiKey.API_VERSIONS, **{**client, "client_software_name": name}), 3)
    for version in ("", "1_0", "1.0-"):
        t.call(
            f"software version {version!r}",
            build(ApiKey.API_VERSIONS, **{**client, "client_software_version": version}),
            3,
        )
