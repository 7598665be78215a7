"""Access control entries and the resources that they protect, with Kafka's codes and names.

A binding is a pattern of resources and one entry: who, from which host, may or may not do what. The codes are those of
the protocol (CreateAcls, DescribeAcls, DeleteAcls); the names are those of the znodes and of the tools.

Kafka: ResourceType, PatternType, AclOperation, AclPermissionType, ResourcePattern, ResourcePatternFilter,
AccessControlEntry, AccessControlEntryFilter, AclBinding, AclBindingFilter, SecurityUtils, AclEntry.
"""

from __future__ import annotations

from enum import IntEnum, unique
from typing import Final, NamedTuple, Self, TypeVar, cast

CodeT = TypeVar("CodeT", bound="ResourceType | AclOperation | AclPermissionType")

WILDCARD: Final = "*"
"""As the name of a literal pattern: every resource; as a host: every host."""

WILDCARD_PRINCIPAL: Final = "User:*"

CLUSTER_NAME: Final = "kafka-cluster"
"""The name of the one resource of type CLUSTER."""


class AclCode(IntEnum):
    """A code of the protocol, whose 0 stands for every code that does not exist."""

    @classmethod
    def _missing_(cls, value: object) -> Self:
        return cls(0)


@unique
class ResourceType(AclCode):
    """ANY is for filters only."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


@unique
class PatternType(AclCode):
    """ANY and MATCH are for filters only: MATCH finds every pattern that affects the resource with that name."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4

    @property
    def is_specific(self) -> bool:
        return self in (PatternType.LITERAL, PatternType.PREFIXED)


@unique
class AclOperation(AclCode):
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


SUPPORTED_OPERATIONS: Final = {
    ResourceType.TOPIC: tuple(map(AclOperation, (3, 4, 5, 6, 7, 8, 10, 11))),
    ResourceType.GROUP: tuple(map(AclOperation, (3, 6, 8))),
    ResourceType.CLUSTER: tuple(map(AclOperation, (5, 7, 8, 9, 10, 11, 12))),
    ResourceType.TRANSACTIONAL_ID: tuple(map(AclOperation, (4, 8))),
    ResourceType.DELEGATION_TOKEN: (AclOperation.DESCRIBE,),
    ResourceType.USER: (AclOperation.CREATE_TOKENS, AclOperation.DESCRIBE_TOKENS),
}
"""The operations that a resource of the type supports. Kafka: AclEntry.supportedOperations."""


@unique
class AclPermissionType(AclCode):
    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


def pascal_name(code: ResourceType | AclOperation | AclPermissionType) -> str:
    """The name in znodes, in the audit log and for the tools: `TransactionalId`. Kafka: SecurityUtils.toPascalCase."""
    return "".join(map(str.capitalize, code.name.split("_")))


def code_of_name(codes: type[CodeT], name: str) -> CodeT:
    """The code of a name as `pascal_name` writes it, in any case; UNKNOWN for any other text.

    Kafka: SecurityUtils.resourceType, SecurityUtils.operation, SecurityUtils.permissionType.
    """
    return cast("CodeT", _CODES[codes].get(name.upper(), codes(0)))


_CODES: Final[dict[type[IntEnum], dict[str, IntEnum]]] = {
    codes: {pascal_name(code).upper(): code for code in codes}
    for codes in (ResourceType, AclOperation, AclPermissionType)
}


def check_principal(text: str) -> str:
    """The principal. Raises: ValueError if it has no type. Kafka: SecurityUtils.parseKafkaPrincipal."""
    if ":" not in text:
        raise ValueError(f"expected a string in format principalType:principalName but got {text}")
    return text


class ResourcePattern(NamedTuple):
    """The resources that an entry is about: one name, all names (`*`), or all names with a prefix."""

    resource_type: ResourceType
    name: str
    pattern_type: PatternType

    def __str__(self) -> str:
        """Kafka's text, which tools print."""
        kind, pattern_type = self.resource_type.name, self.pattern_type.name
        return f"ResourcePattern(resourceType={kind}, name={self.name}, patternType={pattern_type})"


class AccessControlEntry(NamedTuple):
    principal: str
    """`User:name`; `User:*` stands for every principal of that type."""
    host: str
    """An IP address, or `*`."""
    operation: AclOperation
    permission_type: AclPermissionType

    def __str__(self) -> str:
        """Kafka's text, which tools print."""
        operation, permission = self.operation.name, self.permission_type.name
        return f"(principal={self.principal}, host={self.host}, operation={operation}, permissionType={permission})"


class AclBinding(NamedTuple):
    pattern: ResourcePattern
    entry: AccessControlEntry

    @property
    def is_unknown(self) -> bool:
        (kind, _, pattern_type), (_, _, operation, permission) = self
        return not (kind and pattern_type and operation and permission)


class ResourcePatternFilter(NamedTuple):
    resource_type: ResourceType
    name: str | None
    """None matches every name."""
    pattern_type: PatternType

    def matches(self, pattern: ResourcePattern) -> bool:
        resource_type, name, pattern_type = self
        if resource_type not in (ResourceType.ANY, pattern.resource_type):
            return False
        if pattern_type not in (PatternType.ANY, PatternType.MATCH, pattern.pattern_type):
            return False
        if name is None or name == pattern.name:
            return True
        if pattern_type is not PatternType.MATCH:
            return False
        if pattern.pattern_type is PatternType.LITERAL:
            return pattern.name == WILDCARD
        return name.startswith(pattern.name)

    def patterns(self) -> tuple[ResourcePattern, ...]:
        """The patterns that the filter names, at most one of each type. Kafka: AclAuthorizer.filterToResources."""
        resource_type, name, pattern_type = self
        if name is None or resource_type <= ResourceType.ANY:
            return ()
        if pattern_type is PatternType.ANY:
            types = (PatternType.LITERAL, PatternType.PREFIXED)
            return tuple(ResourcePattern(resource_type, name, of_type) for of_type in types)
        return (ResourcePattern(resource_type, name, pattern_type),) if pattern_type.is_specific else ()

    def __str__(self) -> str:
        """Kafka's text, which tools print."""
        kind, name, pattern_type = self.resource_type.name, self.name, self.pattern_type.name
        name = "<any>" if name is None else name
        return f"ResourcePattern(resourceType={kind}, name={name}, patternType={pattern_type})"


class AccessControlEntryFilter(NamedTuple):
    principal: str | None
    """None matches every principal."""
    host: str | None
    """None matches every host."""
    operation: AclOperation
    permission_type: AclPermissionType

    def matches(self, entry: AccessControlEntry) -> bool:
        return (
            self.principal in (None, entry.principal)
            and self.host in (None, entry.host)
            and self.operation in (AclOperation.ANY, entry.operation)
            and self.permission_type in (AclPermissionType.ANY, entry.permission_type)
        )


class AclBindingFilter(NamedTuple):
    pattern: ResourcePatternFilter
    entry: AccessControlEntryFilter
