"""What Apache Kafka answers to a client without any right, in every version of every API: no version asks for less."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import pytest

from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.schema import Request
from tests.support.transcripts.secured import SecuredTranscript
from tests.support.wire.requests import batch, build, message_set

pytestmark = pytest.mark.oracle

CONNECTION: Final = {ApiKey.SASL_HANDSHAKE, ApiKey.API_VERSIONS, ApiKey.SASL_AUTHENTICATE}
"""These ask for no right."""
TOPIC, SCRAM_SHA_256 = 2, 1
STALE_CONTROLLER: Final = {"controller_id": 7, "controller_epoch": 0}
HOST: Final = b"\x7f\x00\x00\x01"

OfVersion = Callable[[int], Request]


class Requests:
    """Of one topic that exists and one that does not, a group, and a transactional id."""

    def __init__(self, t: SecuredTranscript) -> None:
        self.topic, self.missing = t.create("seen"), t.name("missing")
        self.topic_id = t.topic_id(self.topic)
        self.group, self.transactional_id = t.name("group"), t.name("transactional-id")

    def table(self) -> dict[ApiKey, OfVersion]:
        return {
            **self._of_records(),
            **self._of_groups(),
            **self._of_transactions(),
            **self._of_topics(),
            **self._of_the_cluster(),
            **self._of_security(),
            **self._between_brokers(),
        }

    def _named(self, **fields: object) -> list[dict[str, object]]:
        return [{"name": name, **fields} for name in (self.topic, self.missing)]

    def _of_records(self) -> dict[ApiKey, OfVersion]:
        part = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000}
        timestamps = self._named(partitions=[{"partition_index": 0, "timestamp": -1}])
        epochs = [{"topic": self.topic, "partitions": [{"partition": 0, "leader_epoch": 0}]}]
        before = self._named(partitions=[{"partition_index": 0, "offset": 0}])[:1]

        def produce(version: int) -> Request:
            records = batch(b"v") if version > 2 else message_set(version // 2, b"v")
            data = self._named(partition_data=[{"index": 0, "records": records}])
            return build(ApiKey.PRODUCE, acks=1, timeout_ms=5000, topic_data=data)

        def fetch(version: int) -> Request:
            topic: dict[str, object] = {"topic_id": self.topic_id} if version > 12 else {"topic": self.topic}
            limits = {"max_wait_ms": 10, "min_bytes": 0, "max_bytes": 10_000}
            return build(ApiKey.FETCH, topics=[{**topic, "partitions": [part]}], **limits)

        return {
            ApiKey.PRODUCE: produce,
            ApiKey.FETCH: fetch,
            ApiKey.LIST_OFFSETS: always(ApiKey.LIST_OFFSETS, replica_id=-1, topics=timestamps),
            ApiKey.OFFSET_FOR_LEADER_EPOCH: always(ApiKey.OFFSET_FOR_LEADER_EPOCH, topics=epochs),
            ApiKey.DELETE_RECORDS: always(ApiKey.DELETE_RECORDS, topics=before, timeout_ms=5000),
            ApiKey.DESCRIBE_PRODUCERS: always(ApiKey.DESCRIBE_PRODUCERS, topics=self._named(partition_indexes=[0])),
        }

    def _commits(self) -> list[dict[str, object]]:
        part = {"partition_index": 0, "committed_offset": 5, "committed_metadata": ""}
        return self._named(partitions=[part])[:1]

    def _of_groups(self) -> dict[ApiKey, OfVersion]:
        group = {"group_id": self.group}
        member = {**group, "generation_id": 1, "member_id": "m"}
        joining = {"session_timeout_ms": 6000, "rebalance_timeout_ms": 6000, "protocol_type": "consumer"}
        protocols = [{"name": "range", "metadata": b"m"}]
        part = {"topics": self._named(partition_indexes=[0])}

        def fetched(version: int) -> Request:
            fields = {**group, **part} if version < 8 else {"groups": [{**group, **part}]}
            return build(ApiKey.OFFSET_FETCH, **fields)

        def found(version: int) -> Request:
            keys = {"key": self.group} if version < 4 else {"coordinator_keys": [self.group]}
            return build(ApiKey.FIND_COORDINATOR, key_type=0, **keys)

        def left(version: int) -> Request:
            leaving = {"member_id": "m"} if version < 3 else {"members": [{"member_id": "m"}]}
            return build(ApiKey.LEAVE_GROUP, **group, **leaving)

        deleted = self._named(partitions=[{"partition_index": 0}])
        return {
            ApiKey.FIND_COORDINATOR: found,
            ApiKey.OFFSET_COMMIT: always(ApiKey.OFFSET_COMMIT, **group, topics=self._commits()),
            ApiKey.OFFSET_FETCH: fetched,
            ApiKey.JOIN_GROUP: always(ApiKey.JOIN_GROUP, **group, **joining, protocols=protocols),
            ApiKey.SYNC_GROUP: always(
                ApiKey.SYNC_GROUP, **member, protocol_type="consumer", protocol_name="range", assignments=[]
            ),
            ApiKey.HEARTBEAT: always(ApiKey.HEARTBEAT, **member),
            ApiKey.LEAVE_GROUP: left,
            ApiKey.DESCRIBE_GROUPS: always(ApiKey.DESCRIBE_GROUPS, groups=[self.group]),
            ApiKey.LIST_GROUPS: always(ApiKey.LIST_GROUPS),
            ApiKey.DELETE_GROUPS: always(ApiKey.DELETE_GROUPS, groups_names=[self.group]),
            ApiKey.OFFSET_DELETE: always(ApiKey.OFFSET_DELETE, **group, topics=deleted),
            ApiKey.CONSUMER_GROUP_HEARTBEAT: always(ApiKey.CONSUMER_GROUP_HEARTBEAT, **group, member_id="m"),
            ApiKey.CONSUMER_GROUP_DESCRIBE: always(ApiKey.CONSUMER_GROUP_DESCRIBE, group_ids=[self.group]),
        }

    def _of_transactions(self) -> dict[ApiKey, OfVersion]:
        own, producer = {"transactional_id": self.transactional_id}, {"producer_id": 7, "producer_epoch": 0}
        topics = self._named(partitions=[0])[:1]
        old = {"transactional_id": self.transactional_id, **producer, "topics": topics}

        def added(version: int) -> Request:
            fields = {f"v3_and_below_{name}": value for name, value in old.items()}
            return build(ApiKey.ADD_PARTITIONS_TO_TXN, **(fields if version < 4 else {"transactions": [old]}))

        marker = {**producer, "transaction_result": True, "topics": self._named(partition_indexes=[0])[:1]}
        return {
            ApiKey.INIT_PRODUCER_ID: always(ApiKey.INIT_PRODUCER_ID, **own, transaction_timeout_ms=1000),
            ApiKey.ADD_PARTITIONS_TO_TXN: added,
            ApiKey.ADD_OFFSETS_TO_TXN: always(ApiKey.ADD_OFFSETS_TO_TXN, **own, **producer, group_id=self.group),
            ApiKey.TXN_OFFSET_COMMIT: always(
                ApiKey.TXN_OFFSET_COMMIT, **own, **producer, group_id=self.group, topics=self._commits()
            ),
            ApiKey.END_TXN: always(ApiKey.END_TXN, **own, **producer, committed=True),
            ApiKey.WRITE_TXN_MARKERS: always(ApiKey.WRITE_TXN_MARKERS, markers=[marker]),
            ApiKey.DESCRIBE_TRANSACTIONS: always(
                ApiKey.DESCRIBE_TRANSACTIONS, transactional_ids=[self.transactional_id]
            ),
            ApiKey.LIST_TRANSACTIONS: always(ApiKey.LIST_TRANSACTIONS),
        }

    def _of_topics(self) -> dict[ApiKey, OfVersion]:
        new = [{"name": self.missing, "num_partitions": 1, "replication_factor": 1}]
        grown = [{"name": self.topic, "count": 2}]
        asked = [{"topic": self.topic, "partitions": [0]}]
        moved = [{"name": self.topic, "partitions": [{"partition_index": 0, "replicas": [0]}]}]
        dirs = [{"path": "/no/such/dir", "topics": [{"name": self.topic, "partitions": [0]}]}]

        def deleted(version: int) -> Request:
            named = {"topic_names": [self.topic]} if version < 6 else {"topics": [{"name": self.topic}]}
            return build(ApiKey.DELETE_TOPICS, timeout_ms=9000, **named)

        return {
            ApiKey.METADATA: always(ApiKey.METADATA, topics=self._named()),
            ApiKey.CREATE_TOPICS: always(ApiKey.CREATE_TOPICS, topics=new, timeout_ms=9000),
            ApiKey.DELETE_TOPICS: deleted,
            ApiKey.CREATE_PARTITIONS: always(ApiKey.CREATE_PARTITIONS, topics=grown, timeout_ms=9000),
            ApiKey.ELECT_LEADERS: always(ApiKey.ELECT_LEADERS, topic_partitions=asked, timeout_ms=3000),
            ApiKey.ALTER_PARTITION_REASSIGNMENTS: always(ApiKey.ALTER_PARTITION_REASSIGNMENTS, topics=moved),
            ApiKey.LIST_PARTITION_REASSIGNMENTS: always(ApiKey.LIST_PARTITION_REASSIGNMENTS, topics=None),
            ApiKey.DESCRIBE_LOG_DIRS: always(ApiKey.DESCRIBE_LOG_DIRS, topics=asked),
            ApiKey.ALTER_REPLICA_LOG_DIRS: always(ApiKey.ALTER_REPLICA_LOG_DIRS, dirs=dirs),
        }

    def _of_the_cluster(self) -> dict[ApiKey, OfVersion]:
        config = {"name": "retention.ms", "value": "1000000"}
        resource = {"resource_type": TOPIC, "resource_name": self.topic}
        altered = [{**resource, "configs": [config]}]
        described = [{**resource, "configuration_keys": ["retention.ms"]}]
        entity = [{"entity_type": "user", "entity_name": "nobody"}]
        entry = {"entity": entity, "ops": [{"key": "producer_byte_rate", "value": 1.0, "remove": False}]}
        component = {"entity_type": "user", "match_type": 0, "match": "nobody"}
        update = {"feature": "metadata.version", "max_version_level": 1, "upgrade_type": 1}

        def features(version: int) -> Request:
            old = {name: value for name, value in update.items() if version or name != "upgrade_type"}
            return build(ApiKey.UPDATE_FEATURES, timeout_ms=1000, feature_updates=[old])

        return {
            ApiKey.DESCRIBE_CLUSTER: always(ApiKey.DESCRIBE_CLUSTER, include_cluster_authorized_operations=True),
            ApiKey.DESCRIBE_CONFIGS: always(ApiKey.DESCRIBE_CONFIGS, resources=described),
            ApiKey.ALTER_CONFIGS: always(ApiKey.ALTER_CONFIGS, resources=altered),
            ApiKey.INCREMENTAL_ALTER_CONFIGS: always(ApiKey.INCREMENTAL_ALTER_CONFIGS, resources=altered),
            ApiKey.DESCRIBE_CLIENT_QUOTAS: always(ApiKey.DESCRIBE_CLIENT_QUOTAS, components=[component]),
            ApiKey.ALTER_CLIENT_QUOTAS: always(ApiKey.ALTER_CLIENT_QUOTAS, entries=[entry]),
            ApiKey.UPDATE_FEATURES: features,
        }

    def _of_security(self) -> dict[ApiKey, OfVersion]:
        resource = {"resource_type": TOPIC, "resource_name": self.topic}
        acl = {**resource, "principal": "User:me", "host": "*", "operation": 2, "permission_type": 3}
        anything = {"resource_type_filter": 1, "resource_name_filter": None, "operation": 1, "permission_type": 1}
        credential = {"name": "me", "mechanism": SCRAM_SHA_256, "iterations": 4096, "salt": b"s"}
        upsertions = [{**credential, "salted_password": b"p"}]
        return {
            ApiKey.CREATE_ACLS: always(ApiKey.CREATE_ACLS, creations=[acl]),
            ApiKey.DESCRIBE_ACLS: always(ApiKey.DESCRIBE_ACLS, **anything),
            ApiKey.DELETE_ACLS: always(ApiKey.DELETE_ACLS, filters=[anything]),
            ApiKey.CREATE_DELEGATION_TOKEN: always(ApiKey.CREATE_DELEGATION_TOKEN, max_lifetime_ms=-1),
            ApiKey.RENEW_DELEGATION_TOKEN: always(ApiKey.RENEW_DELEGATION_TOKEN, hmac=b"h", renew_period_ms=1),
            ApiKey.EXPIRE_DELEGATION_TOKEN: always(ApiKey.EXPIRE_DELEGATION_TOKEN, hmac=b"h", expiry_time_period_ms=1),
            ApiKey.DESCRIBE_DELEGATION_TOKEN: always(ApiKey.DESCRIBE_DELEGATION_TOKEN, owners=None),
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: always(
                ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, users=[{"name": "nobody"}]
            ),
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS: always(
                ApiKey.ALTER_USER_SCRAM_CREDENTIALS, deletions=[], upsertions=upsertions
            ),
        }

    def _between_brokers(self) -> dict[ApiKey, OfVersion]:
        state = {"partition_index": 0, "leader": 7, "isr": [7], "replicas": [7]}
        states = [{"topic_name": self.topic, "partition_states": [state]}]
        ungrouped = [{"topic_name": self.topic, **state}]

        def leaders(version: int) -> Request:
            named = {"topic_states": states} if version > 1 else {"ungrouped_partition_states": ungrouped}
            return build(ApiKey.LEADER_AND_ISR, **STALE_CONTROLLER, **named)

        def metadata(version: int) -> Request:
            named = {"topic_states": states} if version > 4 else {"ungrouped_partition_states": ungrouped}
            return build(ApiKey.UPDATE_METADATA, **STALE_CONTROLLER, **named)

        def stopped(version: int) -> Request:
            named: dict[str, object]
            if version == 0:
                named = {"ungrouped_partitions": [{"topic_name": self.topic, "partition_index": 0}]}
            elif version < 3:
                named = {"topics": [{"name": self.topic, "partition_indexes": [0]}]}
            else:
                stopping = {"partition_index": 0, "leader_epoch": 9, "delete_partition": True}
                named = {"topic_states": [{"topic_name": self.topic, "partition_states": [stopping]}]}
            return build(ApiKey.STOP_REPLICA, **STALE_CONTROLLER, **named)

        broker = {"broker_id": 0, "broker_epoch": 1}
        return {
            ApiKey.LEADER_AND_ISR: leaders,
            ApiKey.UPDATE_METADATA: metadata,
            ApiKey.STOP_REPLICA: stopped,
            ApiKey.CONTROLLED_SHUTDOWN: always(ApiKey.CONTROLLED_SHUTDOWN, **broker),
            ApiKey.ALTER_PARTITION: always(ApiKey.ALTER_PARTITION, **broker),
            ApiKey.ALLOCATE_PRODUCER_IDS: always(ApiKey.ALLOCATE_PRODUCER_IDS, **broker),
            ApiKey.ENVELOPE: always(ApiKey.ENVELOPE, request_data=b"", request_principal=b"", client_host_address=HOST),
        }


def always(key: ApiKey, **fields: object) -> OfVersion:
    """The same fields in each version."""
    request = build(key, **fields)
    return lambda version: request


def test_every_version_without_a_right(secured: SecuredTranscript) -> None:
    t = secured
    table = Requests(t).table()
    assert set(table) == set(API) - CONNECTION
    t.allow()
    for key, of_version in table.items():
        spec = API[key]
        t.sweep(spec.name, range(spec.min_version, spec.max_version + 1), of_version)
