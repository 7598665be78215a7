"""Access control entries and the resources that they protect, with Kafka's codes and names.

A binding is a pattern of resources and one entry: who, from which host, may or may not do what. The codes are those of
the protocol (CreateAcls, DescribeAcls, DeleteAcls); the names are those of the znodes and of the tools.

Kafka: ResourceType, PatternType, AclOperation, AclPermissionType, ResourcePattern, ResourcePatternFilter,
AccessControlEntry, AccessControlEntryFilter, AclBinding, AclBindingFilter.
"""

from __future__ import annotations

from enum import IntEnum, unique
from typing import Final, NamedTuple

WILDCARD: Final = "*"
"""As the name of a literal pattern: every resource; as a host: every host."""

WILDCARD_PRINCIPAL: Final = "User:*"

CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the one resource of type CLUSTER."""


@unique
class ResourceType(IntEnum):
    """UNKNOWN stands for any other code; ANY is for filters only."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7

    @classmethod
    def _missing_(cls, value: object) -> ResourceType:
        return cls.UNKNOWN


@unique
class PatternType(IntEnum):
    """ANY and MATCH are for filters only: MATCH finds every pattern that affects the resource with that name."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4

    @classmethod
    def _missing_(cls, value: object) -> PatternType:
        return cls.UNKNOWN

    @property
    def is_specific(self) -> bool:
        return self in (PatternType.LITERAL, PatternType.PREFIXED)


@unique
class AclOperation(IntEnum):
    """ALL in an entry stands for every operation; ANY is for filters only."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14

    @classmethod
    def _missing_(cls, value: object) -> AclOperation:
        return cls.UNKNOWN


@unique
class AclPermissionType(IntEnum):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3

    @classmethod
    def _missing_(cls, value: object) -> AclPermissionType:
        return cls.UNKNOWN


class ResourcePattern(NamedTuple):
    """The resources that an entry is about: one name, all names (`*`), or all names with a prefix."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType


class AccessControlEntry(NamedTuple):
    principal: str
    """`User:name`; `User:*` stands for every principal of that type."""
    host: str
    """An IP address, or `*`."""
    operation: AclOperation
    permission_type: AclPermissionType


class AclBinding(NamedTuple):
    pattern: ResourcePattern
    entry: AccessControlEntry


class ResourcePatternFilter(NamedTuple):
    resource_type: ResourceType
    name: str | None
    """None matches every name."""
    pattern_type: PatternType


class AccessControlEntryFilter(NamedTuple):
    principal: str | None
    host: str | None
    operation: AclOperation
    permission_type: AclPermissionType


class AclBindingFilter(NamedTuple):
    pattern: ResourcePatternFilter
    entry: AccessControlEntryFilter
