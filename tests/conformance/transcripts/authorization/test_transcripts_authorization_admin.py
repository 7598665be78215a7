"""What Apache Kafka with an AclAuthorizer answers to administrators and brokers with no, some and all rights.

The client may name what exists and what does not: without the right it must not learn which is which.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from odradek.controller.model.acls import AclOperation
from odradek.protocol.api import ApiKey
from tests.support.transcripts.rights import EVERYTHING, Right, cluster, topic
from tests.support.transcripts.secured import UNKNOWN_ID, SecuredTranscript
from tests.support.wire.requests import build

pytestmark = pytest.mark.oracle

Op = AclOperation


def test_metadata(secured: SecuredTranscript) -> None:
    t = secured
    seen, unseen, missing = t.create("seen"), t.create("unseen"), t.name("missing")
    ids = [t.topic_id(seen), t.topic_id(unseen), UNKNOWN_ID]
    stems = {seen: "seen", unseen: "unseen"}

    def ask(label: str) -> None:
        for version in (1, 4, 8, 12):
            for name in (seen, unseen, missing, "__consumer_offsets", "not/valid"):
                fields = {"include_topic_authorized_operations": True} if version >= 8 else {}
                request = build(ApiKey.METADATA, topics=[{"name": name}], allow_auto_topic_creation=False, **fields)
                if version < 4:
                    if name == missing:
                        continue  # would create it
                    request = build(ApiKey.METADATA, topics=[{"name": name}])
                t.call(f"{t.stem(name)} v{version}: {label}", request, version)
        request = build(ApiKey.METADATA, topics=[], include_cluster_authorized_operations=True)
        t.call(f"cluster v8: {label}", request, 8)
        for found, stem in zip(ids, ("seen", "unseen", "unknown"), strict=True):
            request = build(ApiKey.METADATA, topics=[{"topic_id": found, "name": None}])
            t.call(f"id of {stem}: {label}", request, 12)
        for version in (0, 1, 12):
            everything = t.client.call(build(ApiKey.METADATA, topics=[] if version == 0 else None), version)
            names = {one.name: one.error_code for one in everything.topics}  # type: ignore[attr-defined]
            t.note(f"all v{version}: {label}", {stem: names.get(name) for name, stem in stems.items()})
        for version, operations in ((0, False), (1, True)):
            request = build(ApiKey.DESCRIBE_CLUSTER, include_cluster_authorized_operations=operations)
            t.call(f"cluster, operations {operations}: {label}", request, version)

    t.with_rights(
        {
            "nothing": (),
            "describe": [topic(Op.DESCRIBE, seen), topic(Op.DESCRIBE, missing), cluster(Op.DESCRIBE)],
            "some": [topic(Op.READ, seen), topic(Op.ALTER_CONFIGS, seen), cluster(Op.ALTER)],
            "everything": EVERYTHING,
        },
        ask,
    )


def test_automatic_creation(secured: SecuredTranscript) -> None:
    t = secured

    def ask(new: Callable[[str], Sequence[Right]]) -> Callable[[str], None]:
        def one(label: str) -> None:
            name = t.name(f"new-{label.replace(' ', '-')}")
            t.allow(*new(name))
            t.call(label, build(ApiKey.METADATA, topics=[{"name": name}], allow_auto_topic_creation=True), 9)

        return one

    ask(lambda name: ())("nothing")
    ask(lambda name: [topic(Op.DESCRIBE, name)])("describe")
    ask(lambda name: [topic(Op.CREATE, name)])("create only")
    ask(lambda name: [topic(Op.DESCRIBE, name), topic(Op.CREATE, name)])("describe and create")
    ask(lambda name: [topic(Op.DESCRIBE, name), cluster(Op.CREATE)])("describe and cluster")
    ask(lambda name: EVERYTHING)("everything")


def test_creation_of_topics(secured: SecuredTranscript) -> None:
    t = secured
    old = t.create("old")

    def one(label: str, rights: Callable[[str], Sequence[Right]]) -> None:
        for version in (1, 5, 7):
            new = t.name(f"new-{label.replace(' ', '-')}-{version}")
            t.allow(*rights(new))
            settings = {"num_partitions": 1, "replication_factor": 1}
            for name, what in ((new, "new"), (old, "old"), ("__cluster_metadata", "quorum")):
                topics = [{"name": name, **settings}]
                request = build(ApiKey.CREATE_TOPICS, topics=topics, timeout_ms=10_000)
                t.call(f"{what} v{version}: {label}", request, version)
            twice = [{"name": new, **settings}, {"name": new, **settings}]
            t.call(f"twice v{version}: {label}", build(ApiKey.CREATE_TOPICS, topics=twice, timeout_ms=9000), version)

    one("nothing", lambda name: ())
    one("create", lambda name: [topic(Op.CREATE, name), topic(Op.CREATE, old)])
    one("create and describe", lambda name: [topic(Op.CREATE, name), topic(Op.DESCRIBE_CONFIGS, name)])
    one("cluster", lambda name: [cluster(Op.CREATE)])
    one("cluster and describe", lambda name: [cluster(Op.CREATE), topic(Op.ALTER_CONFIGS, "*")])
    one("everything", lambda name: EVERYTHING)


def test_changes_of_topics(secured: SecuredTranscript) -> None:
    t = secured

    def one(label: str, rights: Callable[[str, str], Sequence[Right]]) -> None:
        stem = label.replace(" ", "-")
        seen, missing = t.create(f"seen-{stem}"), t.name(f"missing-{stem}")
        found = t.topic_id(seen)
        t.allow(*rights(seen, missing))
        for version in (1, 3):
            for name in (seen, missing):
                topics = [{"name": name, "count": 2 if version == 1 else 3}]
                request = build(ApiKey.CREATE_PARTITIONS, topics=topics, timeout_ms=9000)
                t.call(f"grow {t.stem(name)} v{version}: {label}", request, version)
        twice = [{"name": seen, "count": 7}, {"name": seen, "count": 7}]
        t.call(f"grow twice: {label}", build(ApiKey.CREATE_PARTITIONS, topics=twice, timeout_ms=9000), 2)
        for asked in ({"topic_id": UNKNOWN_ID, "name": None}, {"topic_id": found, "name": None}):
            request = build(ApiKey.DELETE_TOPICS, topics=[asked], timeout_ms=9000)
            t.call(f"delete by id {asked['topic_id'] == found}: {label}", request, 6)
        for version in (1, 5):
            for name in (seen, missing):
                request = build(ApiKey.DELETE_TOPICS, topic_names=[name], timeout_ms=9000)
                t.call(f"delete {t.stem(name)} v{version}: {label}", request, version)
        request = build(ApiKey.DELETE_TOPICS, topics=[{"name": missing}], timeout_ms=9000)
        t.call(f"delete missing v6: {label}", request, 6)

    one("nothing", lambda seen, missing: ())
    one("describe", lambda seen, missing: [topic(Op.DESCRIBE, seen), topic(Op.DESCRIBE, missing)])
    one("alter", lambda seen, missing: [topic(Op.ALTER, seen), topic(Op.ALTER, missing)])
    one("delete", lambda seen, missing: [topic(Op.DELETE, seen), topic(Op.DELETE, missing)])
    one("everything", lambda seen, missing: EVERYTHING)


def test_replicas(secured: SecuredTranscript) -> None:
    t = secured
    seen = t.create("seen")

    def ask(label: str) -> None:
        for version in (1, 4):
            described = build(ApiKey.DESCRIBE_LOG_DIRS, topics=[{"topic": seen, "partitions": [0]}])
            t.call(f"directories v{version}: {label}", described, version)
        dirs = [{"path": "/no/such/dir", "topics": [{"name": seen, "partitions": [0]}]}]
        t.call(f"move: {label}", build(ApiKey.ALTER_REPLICA_LOG_DIRS, dirs=dirs), 2)
        for version in (0, 2):
            asked = [{"topic": seen, "partitions": [0]}]
            request = build(ApiKey.ELECT_LEADERS, topic_partitions=asked, timeout_ms=3000)
            t.call(f"elect v{version}: {label}", request, version)
        t.call(f"elect all: {label}", build(ApiKey.ELECT_LEADERS, topic_partitions=None, timeout_ms=3000), 2)
        moved = [{"name": "no-such-topic", "partitions": [{"partition_index": 0, "replicas": [0]}]}]
        request = build(ApiKey.ALTER_PARTITION_REASSIGNMENTS, topics=moved, timeout_ms=5000)
        t.call(f"reassign: {label}", request, 0)
        t.call(f"reassignments: {label}", build(ApiKey.LIST_PARTITION_REASSIGNMENTS, topics=None), 0)

    some = {op.name: [cluster(op)] for op in (Op.DESCRIBE, Op.ALTER, Op.CLUSTER_ACTION)}
    t.with_rights({"nothing": (), **some, "everything": EVERYTHING}, ask)


# -- configs

TOPIC, BROKER, LOGGER, CLIENT_METRICS = 2, 4, 8, 16


def test_configs(secured: SecuredTranscript) -> None:
    t = secured
    seen, missing = t.create("seen"), t.name("missing")
    resources = {
        "seen": (TOPIC, seen, "retention.ms", "1000000"),
        "missing": (TOPIC, missing, "retention.ms", "1000000"),
        "invalid": (TOPIC, seen, "retention.ms", "x"),
        "broker": (BROKER, "0", "log.cleaner.threads", "1"),
        "other broker": (BROKER, "9", "log.cleaner.threads", "1"),
        "invalid broker": (BROKER, "0", "log.cleaner.threads", "x"),
        "logger": (LOGGER, "0", "kafka.server.KafkaApis", "INFO"),
        "other logger": (LOGGER, "9", "kafka.server.KafkaApis", "INFO"),
        "metrics": (CLIENT_METRICS, "m", "interval.ms", "1000"),
    }

    def ask(label: str) -> None:
        described = [
            {"resource_type": kind, "resource_name": name, "configuration_keys": [key]}
            for what, (kind, name, key, _) in resources.items()
            if what not in ("invalid", "invalid broker", "logger")
        ]
        t.call(f"describe: {label}", build(ApiKey.DESCRIBE_CONFIGS, resources=described), 4)
        for what, (kind, name, key, value) in resources.items():
            if what == "metrics":
                continue  # served by KRaft alone
            config = {"name": key, "value": value}
            resource = {"resource_type": kind, "resource_name": name, "configs": [config]}
            request = build(ApiKey.ALTER_CONFIGS, resources=[resource], validate_only=True)
            t.call(f"replace {what}: {label}", request, 2)
            if "logger" not in what:  # loggers have other names
                request = build(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=[resource], validate_only=True)
                t.call(f"alter {what}: {label}", request, 1)
        both = [
            {"resource_type": kind, "resource_name": name, "configs": [{"name": key, "value": value}]}
            for kind, name, key, value in (resources["missing"], resources["broker"], resources["seen"])
        ]
        request = build(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=both, validate_only=True)
        t.call(f"alter three: {label}", request, 1)

    t.with_rights(
        {
            "nothing": (),
            "describe": [topic(Op.DESCRIBE_CONFIGS, seen), cluster(Op.DESCRIBE_CONFIGS)],
            "alter topics": [topic(Op.ALTER_CONFIGS, seen), topic(Op.ALTER_CONFIGS, missing)],
            "alter brokers": [cluster(Op.ALTER_CONFIGS)],
            "everything": EVERYTHING,
        },
        ask,
    )


def test_quotas_users_and_features(secured: SecuredTranscript) -> None:
    t = secured

    def ask(label: str) -> None:
        component = {"entity_type": "user", "match_type": 0, "match": "nobody"}
        request = build(ApiKey.DESCRIBE_CLIENT_QUOTAS, components=[component], strict=False)
        t.call(f"quotas: {label}", request, 1)
        entity = [{"entity_type": "user", "entity_name": "nobody"}]
        entry = {"entity": entity, "ops": [{"key": "no-such-quota", "value": 1.0, "remove": False}]}
        t.call(f"alter quotas: {label}", build(ApiKey.ALTER_CLIENT_QUOTAS, entries=[entry], validate_only=True), 1)
        request = build(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, users=[{"name": "nobody"}])
        t.call(f"users: {label}", request, 0)
        deleted = [{"name": "somebody", "mechanism": 1}, {"name": "nobody", "mechanism": 1}]
        added = [{"name": "nobody", "mechanism": 2, "iterations": 9, "salt": b"s", "salted_password": b"p"}]
        request = build(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, deletions=deleted, upsertions=added)
        t.call(f"alter users: {label}", request, 0)
        update = {"feature": "metadata.version", "max_version_level": 1, "upgrade_type": 1}
        t.call(f"features: {label}", build(ApiKey.UPDATE_FEATURES, timeout_ms=1000, feature_updates=[update]), 1)

    operations = (Op.DESCRIBE, Op.ALTER, Op.DESCRIBE_CONFIGS, Op.ALTER_CONFIGS)
    some = {op.name: [cluster(op)] for op in operations}
    t.with_rights({"nothing": (), **some, "everything": EVERYTHING}, ask)


def test_acls(secured: SecuredTranscript) -> None:
    t = secured
    guarded = t.name("guarded")
    binding = {
        "resource_type": 2,
        "resource_name": guarded,
        "resource_pattern_type": 3,
        "principal": "User:nobody",
        "host": "10.0.0.9",
        "operation": 3,
        "permission_type": 3,
    }
    wanted = {
        "resource_type_filter": 2,
        "resource_name_filter": guarded,
        "pattern_type_filter": 3,
        "principal_filter": None,
        "host_filter": None,
        "operation": 1,
        "permission_type": 1,
    }

    def ask(label: str) -> None:
        for version in (1, 3):
            creating = build(ApiKey.CREATE_ACLS, creations=[binding, {**binding, "resource_name": ""}])
            t.call(f"create v{version}: {label}", creating, version)
            t.call(f"describe v{version}: {label}", build(ApiKey.DESCRIBE_ACLS, **wanted), version)
            filters = [{**wanted, "pattern_type_filter": 3}]
            t.call(f"delete v{version}: {label}", build(ApiKey.DELETE_ACLS, filters=filters), version)

    some = {op.name: [cluster(op)] for op in (Op.DESCRIBE, Op.ALTER, Op.ALTER_CONFIGS)}
    t.with_rights({"nothing": (), **some, "everything": EVERYTHING}, ask)


def test_delegation_tokens(secured: SecuredTranscript) -> None:
    """Whatever a client may do, it gets no token on a listener without authentication."""
    t = secured

    def ask(label: str) -> None:
        for version in (1, 3):
            fields = {"owner_principal_type": "User", "owner_principal_name": "other"} if version == 3 else {}
            creating = build(ApiKey.CREATE_DELEGATION_TOKEN, max_lifetime_ms=-1, **fields)
            t.call(f"create v{version}: {label}", creating, version)
            t.call(f"describe v{version}: {label}", build(ApiKey.DESCRIBE_DELEGATION_TOKEN, owners=None), version)
        t.call(f"renew: {label}", build(ApiKey.RENEW_DELEGATION_TOKEN, hmac=b"h", renew_period_ms=1), 2)
        t.call(f"expire: {label}", build(ApiKey.EXPIRE_DELEGATION_TOKEN, hmac=b"h", expiry_time_period_ms=1), 2)

    t.with_rights({"nothing": (), "everything": EVERYTHING}, ask)


# -- between brokers

STALE = 0
"""The epoch of a controller of long ago: a request that is allowed changes nothing."""


def test_requests_of_brokers(secured: SecuredTranscript) -> None:
    t = secured
    state = {"partition_index": 0, "leader": 0, "isr": [0], "replicas": [0]}

    def ask(label: str) -> None:
        control = {"controller_id": 7, "controller_epoch": STALE}
        states = [{"topic_name": "t", "partition_states": [state]}]
        t.call(f"leaders v4: {label}", build(ApiKey.LEADER_AND_ISR, topic_states=states, **control), 4)
        t.call(f"leaders v7: {label}", build(ApiKey.LEADER_AND_ISR, topic_states=states, **control), 7)
        stopped = [{"topic_name": "t", "partition_states": [{"partition_index": 0, "leader_epoch": 0}]}]
        t.call(f"stop: {label}", build(ApiKey.STOP_REPLICA, topic_states=stopped, **control), 4)
        t.call(f"metadata: {label}", build(ApiKey.UPDATE_METADATA, topic_states=states, **control), 8)
        shutdown = build(ApiKey.CONTROLLED_SHUTDOWN, broker_id=7, broker_epoch=1)
        t.call(f"shutdown: {label}", shutdown, 3)
        t.call(f"alter: {label}", build(ApiKey.ALTER_PARTITION, broker_id=7, broker_epoch=1), 3)
        t.call(f"producer ids: {label}", build(ApiKey.ALLOCATE_PRODUCER_IDS, broker_id=7, broker_epoch=1), 0)
        envelope = build(
            ApiKey.ENVELOPE, request_data=b"", request_principal=b"", client_host_address=b"\x7f\x00\x00\x01"
        )
        t.call(f"envelope: {label}", envelope, 0)

    some = {op.name: [cluster(op)] for op in (Op.ALTER, Op.CLUSTER_ACTION)}
    t.with_rights({"nothing": (), **some, "everything": EVERYTHING}, ask)
