"""What Apache Kafka answers to rarer administrative requests: elections, log directories, quotas, users, ACLs."""

from __future__ import annotations

import pytest

from odradek.protocol.api import ApiKey
from tests.support.transcripts.transcript import Transcript
from tests.support.wire.requests import batch, build

pytestmark = pytest.mark.oracle


def create(t: Transcript, stem: str, partitions: int = 2) -> str:
    topic = t.name(stem)
    new = {"name": topic, "num_partitions": partitions, "replication_factor": 1}
    t.quietly(build(ApiKey.CREATE_TOPICS, topics=[new], timeout_ms=10_000), 2)
    return topic


def test_elect_leaders(transcript: Transcript) -> None:
    t = transcript
    topic = create(t, "elected")
    for version in range(3):
        for label, partitions in {
            "one": [{"topic": topic, "partitions": [0]}],
            "unknown partition": [{"topic": topic, "partitions": [9]}],
            "unknown topic": [{"topic": "no-such-topic", "partitions": [0]}],
            "none": [],
            "all": None,
        }.items():
            for kind in (0, 1) if version else (0,):
                fields = {"election_type": kind} if version else {}
                request = build(ApiKey.ELECT_LEADERS, topic_partitions=partitions, timeout_ms=3000, **fields)
                t.call(f"{label}, type {kind} v{version}", request, version)
    one = [{"topic": topic, "partitions": [0]}]
    t.call("type 5", build(ApiKey.ELECT_LEADERS, election_type=5, topic_partitions=one, timeout_ms=3000), 2)


def test_reassignments(transcript: Transcript) -> None:
    t = transcript
    topic = create(t, "moved")

    def alter(label: str, name: str, partition: int, replicas: list[int] | None) -> None:
        topics = [{"name": name, "partitions": [{"partition_index": partition, "replicas": replicas}]}]
        t.call(label, build(ApiKey.ALTER_PARTITION_REASSIGNMENTS, topics=topics, timeout_ms=5000), 0)

    alter("to where it is", topic, 0, [0])
    alter("cancelled", topic, 0, None)
    alter("to an unknown broker", topic, 0, [7])
    alter("to nobody", topic, 0, [])
    alter("twice to one broker", topic, 0, [0, 0])
    alter("negative broker", topic, 0, [-1])
    alter("unknown partition", topic, 9, [0])
    alter("unknown topic", "no-such-topic", 0, [0])
    t.call("none", build(ApiKey.ALTER_PARTITION_REASSIGNMENTS, timeout_ms=5000), 0)
    t.call("list all", build(ApiKey.LIST_PARTITION_REASSIGNMENTS, topics=None), 0)
    t.call("list none", build(ApiKey.LIST_PARTITION_REASSIGNMENTS, topics=[]), 0)
    listed = [{"name": topic, "partition_indexes": [0, 9]}, {"name": "no-such-topic", "partition_indexes": [0]}]
    t.call("list some", build(ApiKey.LIST_PARTITION_REASSIGNMENTS, topics=listed), 0)


def test_log_dirs(transcript: Transcript) -> None:
    t = transcript
    topic = create(t, "stored", 1)
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch(b"v" * 100)}]}]
    t.quietly(build(ApiKey.PRODUCE, acks=1, timeout_ms=5000, topic_data=data), 9)
    for version in range(5):
        asked = [{"topic": topic, "partitions": [0]}]
        t.call(f"one v{version}", build(ApiKey.DESCRIBE_LOG_DIRS, topics=asked), version)
        missing = [{"topic": "no-such-topic", "partitions": [0]}]
        t.call(f"unknown v{version}", build(ApiKey.DESCRIBE_LOG_DIRS, topics=missing), version)
        t.call(f"none v{version}", build(ApiKey.DESCRIBE_LOG_DIRS, topics=[]), version)

    def move(label: str, path: str, name: str, partition: int, version: int = 2) -> None:
        dirs = [{"path": path, "topics": [{"name": name, "partitions": [partition]}]}]
        t.call(label, build(ApiKey.ALTER_REPLICA_LOG_DIRS, dirs=dirs), version)

    here = str(t.broker.log_dir)
    for version in range(3):
        move(f"to where it is v{version}", here, topic, 0, version)
        move(f"to another directory v{version}", "/no/such/dir", topic, 0, version)
    move("unknown partition", here, topic, 9)
    move("unknown topic", here, "no-such-topic", 0)
    move("unknown topic, unknown directory", "/no/such/dir", "no-such-topic", 0)
    t.call("nothing", build(ApiKey.ALTER_REPLICA_LOG_DIRS), 2)


def test_describe_producers(transcript: Transcript) -> None:
    t = transcript
    topic = create(t, "produced")
    new = t.until_accepted(build(ApiKey.INIT_PRODUCER_ID, transactional_id=None, transaction_timeout_ms=0), 4)
    records = batch(b"a", b"b", producer_id=new.producer_id, producer_epoch=0, base_sequence=0)
    data = [{"name": topic, "partition_data": [{"index": 0, "records": records}]}]
    t.quietly(build(ApiKey.PRODUCE, acks=1, timeout_ms=5000, topic_data=data), 9)
    t.call("one", build(ApiKey.DESCRIBE_PRODUCERS, topics=[{"name": topic, "partition_indexes": [0, 1, 2]}]), 0)
    t.call("unknown", build(ApiKey.DESCRIBE_PRODUCERS, topics=[{"name": "no", "partition_indexes": [0]}]), 0)
    t.call("none", build(ApiKey.DESCRIBE_PRODUCERS), 0)


def test_client_quotas(transcript: Transcript) -> None:
    t = transcript
    user = t.name("user")

    def alter(
        label: str, entity: list[tuple[str, str | None]], *ops: tuple[str, float, bool], version: int = 1
    ) -> None:
        entry = {
            "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity],
            "ops": [{"key": key, "value": value, "remove": remove} for key, value, remove in ops],
        }
        t.call(label, build(ApiKey.ALTER_CLIENT_QUOTAS, entries=[entry]), version)

    def describe(label: str, *components: tuple[str, int, str | None], strict: bool = False, version: int = 1) -> None:
        asked = [
            {"entity_type": kind, "match_type": match_type, "match": match} for kind, match_type, match in components
        ]
        t.call(label, build(ApiKey.DESCRIBE_CLIENT_QUOTAS, components=asked, strict=strict), version)

    for version in range(2):
        alter(f"set v{version}", [("user", user)], ("producer_byte_rate", 1000.0 + version, False), version=version)
        describe(f"described v{version}", ("user", 0, user), version=version)
    alter("a second", [("user", user), ("client-id", "app")], ("consumer_byte_rate", 5.5, False))
    describe("described strictly", ("user", 0, user), strict=True)
    describe("by both", ("user", 0, user), ("client-id", 2, None))
    alter("removed", [("user", user)], ("producer_byte_rate", 0.0, True))
    alter("removed again", [("user", user)], ("producer_byte_rate", 0.0, True))
    alter("unknown key", [("user", user)], ("no_such_quota", 1.0, False))
    alter("negative", [("user", user)], ("producer_byte_rate", -1.0, False))
    alter("unknown entity", [("planet", "x")], ("producer_byte_rate", 1.0, False))
    alter("empty name", [("user", "")], ("producer_byte_rate", 1.0, False))
    alter("no entity", [], ("producer_byte_rate", 1.0, False))
    alter("ip and user", [("ip", "1.2.3.4"), ("user", user)], ("connection_creation_rate", 1.0, False))
    alter("ip that is none", [("ip", "not an address")], ("connection_creation_rate", 1.0, False))
    describe("unknown entity type", ("planet", 0, "x"))
    describe("match type 9", ("user", 9, None))
    describe("the same type twice", ("user", 0, user), ("user", 0, user))
    alter("cleared", [("user", user), ("client-id", "app")], ("consumer_byte_rate", 0.0, True))


def test_client_quotas_of_addresses_and_defaults(transcript: Transcript) -> None:
    t = transcript
    user, client = t.name("user"), t.name("client")

    def entry(entity: dict[str, str | None], *ops: tuple[str, float | None]) -> dict[str, object]:
        return {
            "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()],
            "ops": [{"key": key, "value": value or 0.0, "remove": value is None} for key, value in ops],
        }

    def alter(label: str, *entries: dict[str, object], validate_only: bool = False) -> None:
        t.call(label, build(ApiKey.ALTER_CLIENT_QUOTAS, entries=[*entries], validate_only=validate_only), 1)

    def describe(label: str, *components: tuple[str, int, str | None], strict: bool = False) -> None:
        asked = [
            {"entity_type": kind, "match_type": match_type, "match": match} for kind, match_type, match in components
        ]
        t.call(label, build(ApiKey.DESCRIBE_CLIENT_QUOTAS, components=asked, strict=strict), 1)

    both, default_client = {"user": user, "client-id": client}, {"user": user, "client-id": None}
    address, default_address = {"ip": "127.0.0.9"}, {"ip": None}
    rate = "connection_creation_rate"
    alter("validated", entry(both, ("request_percentage", 12.5)), validate_only=True)
    alter("refused by validation", entry(both, ("producer_byte_rate", 0.5)), validate_only=True)
    describe("nothing was written", ("user", 0, user))
    alter(
        "several entities, one refused",
        entry(both, ("request_percentage", 12.5), ("controller_mutation_rate", 0.001)),
        entry(default_client, ("producer_byte_rate", 4e9)),
        entry({"client-id": client}, ("consumer_byte_rate", 1e15)),
        entry({"user": user, "planet": "x"}, ("consumer_byte_rate", 1.0)),
    )
    alter("one entity twice", entry(both, ("producer_byte_rate", 1.0)), entry(both, ("producer_byte_rate", 2.0)))
    alter("a SCRAM mechanism", entry({"user": user}, ("SCRAM-SHA-256", 1.0)))
    alter("NaN", entry({"user": user}, ("producer_byte_rate", float("nan"))))
    alter("infinite", entry({"user": user}, ("producer_byte_rate", float("inf"))))
    alter("nearly whole", entry({"user": user}, ("producer_byte_rate", 7.0000001)))
    describe("one of both", ("user", 0, user), ("client-id", 0, client))
    describe("the default client of a user", ("user", 0, user), ("client-id", 1, None))
    describe("the user alone, strictly", ("user", 0, user), strict=True)
    describe("the client, strictly", ("client-id", 0, client), strict=True)
    describe("an unknown user", ("user", 0, "nobody-here"))
    alter("an address", entry(address, (rate, 5.0)))
    alter("the default address", entry(default_address, (rate, 100000.0)))
    alter("a negative rate", entry(address, (rate, -1.0)))
    alter("a rate of bytes for an address", entry(address, ("producer_byte_rate", 1.0)))
    alter("a rate of connections for a user", entry({"user": user}, (rate, 1.0)))
    alter("an address in IPv6", entry({"ip": "::1"}, (rate, 1.0)))
    describe("the address", ("ip", 0, "127.0.0.9"))
    describe("the default address alone", ("ip", 1, None), strict=True)
    describe("an address and a user", ("ip", 2, None), ("user", 2, None))
    describe("no entity type", ("", 0, "x"))
    gone = [(both, "request_percentage"), (both, "controller_mutation_rate"), (both, "producer_byte_rate")]
    gone += [(default_client, "producer_byte_rate"), ({"client-id": client}, "consumer_byte_rate")]
    gone += [({"user": user}, "producer_byte_rate"), (address, rate), (default_address, rate)]
    for number, (entity, key) in enumerate(gone):
        alter(f"removed {number}", entry(entity, (key, None)))
    describe("nothing is left", ("user", 0, user))


def test_scram_users(transcript: Transcript) -> None:
    t = transcript
    user = t.name("scram")

    def upsert(label: str, name: str, mechanism: int = 1, iterations: int = 4096, salt: bytes = b"salt") -> None:
        new = {
            "name": name,
            "mechanism": mechanism,
            "iterations": iterations,
            "salt": salt,
            "salted_password": b"p" * 32,
        }
        t.call(label, build(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, upsertions=[new]), 0)

    def delete(label: str, name: str, mechanism: int = 1) -> None:
        gone = {"name": name, "mechanism": mechanism}
        t.call(label, build(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, deletions=[gone]), 0)

    upsert("new", user)
    upsert("a second mechanism", user, 2, 8192)
    t.call("described", build(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, users=[{"name": user}]), 0)
    unknown = [{"name": "nobody"}, {"name": user}, {"name": user}, {"name": ""}]
    t.call("unknown, twice, empty", build(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, users=unknown), 0)
    upsert("too few iterations", user, iterations=4095)
    upsert("too many iterations", user, iterations=16385)
    upsert("unknown mechanism", user, mechanism=9)
    upsert("empty user", "")
    upsert("empty salt", user, salt=b"")
    delete("deleted", user)
    delete("deleted again", user)
    delete("unknown user", "nobody")
    delete("the second mechanism", user, 2)


def test_acls_without_an_authorizer(transcript: Transcript) -> None:
    t = transcript
    anything = {"resource_type_filter": 1, "resource_name_filter": None, "principal_filter": None, "host_filter": None}
    for version in range(4):
        pattern = {"pattern_type_filter": 1} if version else {}
        asked = build(ApiKey.DESCRIBE_ACLS, **anything, **pattern, operation=1, permission_type=1)
        t.call(f"describe v{version}", asked, version)
        new = {"resource_type": 2, "resource_name": "x", "principal": "User:a", "host": "*", "operation": 3}
        creations = [{**new, "permission_type": 3}]
        t.call(f"create v{version}", build(ApiKey.CREATE_ACLS, creations=creations), version)
        filters = [{**anything, **pattern, "operation": 1, "permission_type": 1}]
        t.call(f"delete v{version}", build(ApiKey.DELETE_ACLS, filters=filters), version)


def test_transactions(transcript: Transcript) -> None:
    """Asked about by administrators; the life of a transaction itself is a matter of its own."""
    t = transcript
    names = ["no-such-id", ""]
    t.call("describe", build(ApiKey.DESCRIBE_TRANSACTIONS, transactional_ids=names), 0)
    for version in range(2):
        asked = build(ApiKey.LIST_TRANSACTIONS, state_filters=["Ongoing", "nonsense"], producer_id_filters=[77_777])
        t.call(f"list v{version}", asked, version)
    end = {"transactional_id": "no-such-id", "producer_id": 1, "producer_epoch": 0, "committed": True}
    t.sweep("end of an unknown one", range(5), lambda _: build(ApiKey.END_TXN, **end))
    t.call("end of an empty one", build(ApiKey.END_TXN, **{**end, "transactional_id": ""}), 3)


def test_features_and_tokens(transcript: Transcript) -> None:
    t = transcript
    update = {"feature": "metadata.version", "max_version_level": 1}
    for version in range(2):
        t.call(f"update v{version}", build(ApiKey.UPDATE_FEATURES, feature_updates=[update]), version)
        t.call(f"no updates v{version}", build(ApiKey.UPDATE_FEATURES), version)
    for version in range(4):
        t.call(f"new token v{version}", build(ApiKey.CREATE_DELEGATION_TOKEN, max_lifetime_ms=-1), version)
        t.call(f"tokens v{version}", build(ApiKey.DESCRIBE_DELEGATION_TOKEN, owners=None), version)
    for version in range(3):
        t.call(f"renew v{version}", build(ApiKey.RENEW_DELEGATION_TOKEN, hmac=b"x", renew_period_ms=1), version)
        t.call(f"expire v{version}", build(ApiKey.EXPIRE_DELEGATION_TOKEN, hmac=b"x", expiry_time_period_ms=1), version)


def test_the_new_group_protocol_is_off(transcript: Transcript) -> None:
    t = transcript
    beat = {"group_id": "new", "member_epoch": 0, "rebalance_timeout_ms": 1000, "subscribed_topic_names": ["x"]}
    t.call("heartbeat", build(ApiKey.CONSUMER_GROUP_HEARTBEAT, **beat, topic_partitions=[]), 0)
    t.call("describe", build(ApiKey.CONSUMER_GROUP_DESCRIBE, group_ids=["new", ""]), 0)
