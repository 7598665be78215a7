"""The APIs of a 3.9 broker in ZooKeeper mode: keys, served versions, and where their messages are.

The table is what ApiVersions advertises. It repeats the version ranges of the message modules, so that nothing has to
be imported to know them; a test compares the two.

Kafka: ApiKeys and ApiMessageType.
"""

from __future__ import annotations

from enum import IntEnum
from importlib import import_module

from odradek.protocol.codec.schema import MAX_VERSION, Request, Response


class ApiKey(IntEnum):
    """Keys as they are on the wire. Those of KRaft-only and of later APIs are unknown to this broker."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    ALTER_PARTITION = 56
    UPDATE_FEATURES = 57
    ENVELOPE = 58
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    ALLOCATE_PRODUCER_IDS = 67
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69


class ApiSpec:
    """One row of the table. The module and the classes are named after the key: LIST_OFFSETS is `ListOffsetsRequest`
    in `messages/list_offsets.py`."""

    __slots__ = (
        "_request_type",
        "_response_type",
        "flexible_from",
        "has_client_id_from",
        "key",
        "max_version",
        "min_version",
        "name",
        "tagged_response_headers_from",
    )

    def __init__(self, key: ApiKey, min_version: int, max_version: int, flexible_version: int | None) -> None:
        self.key = key
        self.name = key.name.title().replace("_", "")
        self.min_version = min_version
        self.max_version = max_version
        self.flexible_from = MAX_VERSION + 1 if flexible_version is None else flexible_version
        self.tagged_response_headers_from = MAX_VERSION + 1 if key is ApiKey.API_VERSIONS else self.flexible_from
        """A client of ApiVersions may have chosen a version too high: its answer begins alike in all (KIP-511)."""
        self.has_client_id_from = 1 if key is ApiKey.CONTROLLED_SHUTDOWN else 0
        self._request_type: type[Request] | None = None
        self._response_type: type[Response] | None = None

    @property
    def flexible_version(self) -> int | None:
        """The first flexible version, None when there is none."""
        return self.flexible_from if self.flexible_from <= MAX_VERSION else None

    def request_type(self) -> type[Request]:
        if self._request_type is None:
            self._load()
        assert self._request_type is not None
        return self._request_type

    def response_type(self) -> type[Response]:
        if self._response_type is None:
            self._load()
        assert self._response_type is not None
        return self._response_type

    def is_flexible(self, version: int) -> bool:
        return version >= self.flexible_from

    def request_header_version(self, version: int) -> int:
        """2 adds tagged fields, 1 the client id; ControlledShutdown v0 predates both."""
        if self.is_flexible(version):
            return 2
        return 0 if 0 <= version < self.has_client_id_from else 1

    def response_header_version(self, version: int) -> int:
        """1 adds tagged fields."""
        return 1 if version >= self.tagged_response_headers_from else 0

    def _load(self) -> None:
        module = import_module(f"odradek.protocol.messages.{self.key.name.lower()}")
        self._request_type = getattr(module, f"{self.name}Request")
        self._response_type = getattr(module, f"{self.name}Response")

    def __repr__(self) -> str:
        return f"<{self.name} ({self.key.value}) {self.min_version}-{self.max_version}>"


_TABLE = (
    # key, lowest and highest served version, first flexible version
    ApiSpec(ApiKey.PRODUCE, 0, 11, 9),
    ApiSpec(ApiKey.FETCH, 0, 17, 12),
    ApiSpec(ApiKey.LIST_OFFSETS, 0, 9, 6),
    ApiSpec(ApiKey.METADATA, 0, 12, 9),
    ApiSpec(ApiKey.LEADER_AND_ISR, 0, 7, 4),
    ApiSpec(ApiKey.STOP_REPLICA, 0, 4, 2),
    ApiSpec(ApiKey.UPDATE_METADATA, 0, 8, 6),
    ApiSpec(ApiKey.CONTROLLED_SHUTDOWN, 0, 3, 3),
    ApiSpec(ApiKey.OFFSET_COMMIT, 0, 9, 8),
    ApiSpec(ApiKey.OFFSET_FETCH, 0, 9, 6),
    ApiSpec(ApiKey.FIND_COORDINATOR, 0, 6, 3),
    ApiSpec(ApiKey.JOIN_GROUP, 0, 9, 6),
    ApiSpec(ApiKey.HEARTBEAT, 0, 4, 4),
    ApiSpec(ApiKey.LEAVE_GROUP, 0, 5, 4),
    ApiSpec(ApiKey.SYNC_GROUP, 0, 5, 4),
    ApiSpec(ApiKey.DESCRIBE_GROUPS, 0, 5, 5),
    ApiSpec(ApiKey.LIST_GROUPS, 0, 5, 3),
    ApiSpec(ApiKey.SASL_HANDSHAKE, 0, 1, None),
    ApiSpec(ApiKey.API_VERSIONS, 0, 4, 3),
    ApiSpec(ApiKey.CREATE_TOPICS, 0, 7, 5),
    ApiSpec(ApiKey.DELETE_TOPICS, 0, 6, 4),
    ApiSpec(ApiKey.DELETE_RECORDS, 0, 2, 2),
    ApiSpec(ApiKey.INIT_PRODUCER_ID, 0, 5, 2),
    ApiSpec(ApiKey.OFFSET_FOR_LEADER_EPOCH, 0, 4, 4),
    ApiSpec(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5, 3),
    ApiSpec(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4, 3),
    ApiSpec(ApiKey.END_TXN, 0, 4, 3),
    ApiSpec(ApiKey.WRITE_TXN_MARKERS, 0, 1, 1),
    ApiSpec(ApiKey.TXN_OFFSET_COMMIT, 0, 4, 3),
    ApiSpec(ApiKey.DESCRIBE_ACLS, 0, 3, 2),
    ApiSpec(ApiKey.CREATE_ACLS, 0, 3, 2),
    ApiSpec(ApiKey.DELETE_ACLS, 0, 3, 2),
    ApiSpec(ApiKey.DESCRIBE_CONFIGS, 0, 4, 4),
    ApiSpec(ApiKey.ALTER_CONFIGS, 0, 2, 2),
    ApiSpec(ApiKey.ALTER_REPLICA_LOG_DIRS, 0, 2, 2),
    ApiSpec(ApiKey.DESCRIBE_LOG_DIRS, 0, 4, 2),
    ApiSpec(ApiKey.SASL_AUTHENTICATE, 0, 2, 2),
    ApiSpec(ApiKey.CREATE_PARTITIONS, 0, 3, 2),
    ApiSpec(ApiKey.CREATE_DELEGATION_TOKEN, 0, 3, 2),
    ApiSpec(ApiKey.RENEW_DELEGATION_TOKEN, 0, 2, 2),
    ApiSpec(ApiKey.EXPIRE_DELEGATION_TOKEN, 0, 2, 2),
    ApiSpec(ApiKey.DESCRIBE_DELEGATION_TOKEN, 0, 3, 2),
    ApiSpec(ApiKey.DELETE_GROUPS, 0, 2, 2),
    ApiSpec(ApiKey.ELECT_LEADERS, 0, 2, 2),
    ApiSpec(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, 1),
    ApiSpec(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 0, 0),
    ApiSpec(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0, 0),
    ApiSpec(ApiKey.OFFSET_DELETE, 0, 0, None),
    ApiSpec(ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1, 1),
    ApiSpec(ApiKey.ALTER_CLIENT_QUOTAS, 0, 1, 1),
    ApiSpec(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, 0),
    ApiSpec(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, 0),
    ApiSpec(ApiKey.ALTER_PARTITION, 0, 3, 0),
    ApiSpec(ApiKey.UPDATE_FEATURES, 0, 1, 0),
    ApiSpec(ApiKey.ENVELOPE, 0, 0, 0),
    ApiSpec(ApiKey.DESCRIBE_CLUSTER, 0, 1, 0),
    ApiSpec(ApiKey.DESCRIBE_PRODUCERS, 0, 0, 0),
    ApiSpec(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, 0),
    ApiSpec(ApiKey.LIST_TRANSACTIONS, 0, 1, 0),
    ApiSpec(ApiKey.ALLOCATE_PRODUCER_IDS, 0, 0, 0),
    ApiSpec(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 0, 0),
    ApiSpec(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 0, 0),
)

API: dict[int, ApiSpec] = {spec.key: spec for spec in _TABLE}
"""By key: an `ApiKey`, or the plain int of a header."""
