"""The versions of APIs that Apache Kafka calls deprecated: 4.0 no longer serves them (KIP-896)."""

from __future__ import annotations

from typing import Final

from odradek.protocol.api import ApiKey

LAST_DEPRECATED_VERSIONS: Final = {
    ApiKey.PRODUCE: 2,
    ApiKey.FETCH: 3,
    ApiKey.LIST_OFFSETS: 0,
    ApiKey.OFFSET_COMMIT: 1,
    ApiKey.OFFSET_FETCH: 0,
    ApiKey.JOIN_GROUP: 1,
    ApiKey.CREATE_TOPICS: 1,
    ApiKey.DELETE_TOPICS: 0,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: 1,
    ApiKey.DESCRIBE_ACLS: 0,
    ApiKey.CREATE_ACLS: 0,
    ApiKey.DELETE_ACLS: 0,
    ApiKey.DESCRIBE_CONFIGS: 0,
    ApiKey.ALTER_REPLICA_LOG_DIRS: 0,
    ApiKey.DESCRIBE_LOG_DIRS: 0,
    ApiKey.CREATE_DELEGATION_TOKEN: 0,
    ApiKey.RENEW_DELEGATION_TOKEN: 0,
    ApiKey.EXPIRE_DELEGATION_TOKEN: 0,
    ApiKey.DESCRIBE_DELEGATION_TOKEN: 0,
}
"""Versions up to these are deprecated. Kafka: ApiMessageType.highestDeprecatedVersion."""


def is_deprecated(key: ApiKey, version: int) -> bool:
    """Whether a version of an API is deprecated. Kafka: ApiKeys.isVersionDeprecated."""
    return version <= LAST_DEPRECATED_VERSIONS.get(key, -1)
