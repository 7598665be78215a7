"""The znodes of ACLs: paths and contents.

    /kafka-acl/<Type>/<name>                     the entries of a literal pattern
    /kafka-acl-extended/prefixed/<Type>/<name>   the entries of a prefixed pattern
    /kafka-acl-changes/acl_changes_N             a literal pattern that has changed: `TOPIC:name`
    /kafka-acl-extended-changes/acl_changes_N    a prefixed pattern that has changed, as JSON

A notification has no entries: every broker reads the node of the pattern.

Kafka: ZkAclStore, LiteralAclStore, ExtendedAclStore, ZkAclChangeStore, ResourceZNode, ExtendedAclChangeEvent, AclEntry.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from odradek.controller.model.acls import (
    AccessControlEntry,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
    check_principal,
    code_of_name,
    pascal_name,
)
from odradek.controller.znodes.znode_json import (
    BadZnode,
    Json,
    encode,
    int_in,
    json_object,
    list_in,
    parse,
    str_in,
)

STORES: Final = {PatternType.LITERAL: "/kafka-acl", PatternType.PREFIXED: "/kafka-acl-extended/prefixed"}
CHANGES: Final = {PatternType.LITERAL: "/kafka-acl-changes", PatternType.PREFIXED: "/kafka-acl-extended-changes"}
CHANGE_PREFIX: Final = "acl_changes_"
VERSION: Final = 1

_TYPES: Final = tuple(resource_type for resource_type in ResourceType if resource_type > ResourceType.ANY)

PATHS: Final = (
    *(path for store in STORES.values() for path in (store, *(f"{store}/{pascal_name(kind)}" for kind in _TYPES))),
    *CHANGES.values(),
)
"""The nodes that an authorizer creates when it starts. Kafka: KafkaZkClient.createAclPaths."""


def acl_path(pattern: ResourcePattern) -> str:
    return f"{type_path(pattern.resource_type, pattern.pattern_type)}/{pattern.name}"


def type_path(resource_type: ResourceType, pattern_type: PatternType) -> str:
    return f"{STORES[pattern_type]}/{pascal_name(resource_type)}"


def change_path(pattern: ResourcePattern) -> str:
    """The path of a new notification, without its number."""
    return f"{CHANGES[pattern.pattern_type]}/{CHANGE_PREFIX}"


def encode_acls(entries: Iterable[AccessControlEntry]) -> bytes:
    acls: list[Json] = [
        {
            "principal": entry.principal,
            "permissionType": pascal_name(entry.permission_type),
            "host": entry.host,
            "operation": pascal_name(entry.operation),
        }
        for entry in entries
    ]
    return encode({"acls": acls, "version": VERSION})


def decode_acls(data: bytes | None, path: str) -> frozenset[AccessControlEntry]:
    """The entries; none if the node is not JSON, as in Kafka. Raises: BadZnode."""
    node = parse(data)
    if node is None:
        return frozenset()
    if not isinstance(node, dict) or int_in(node, "version") != VERSION:
        raise BadZnode(f"{path} does not hold ACLs of version {VERSION}")
    return frozenset(_entries(list_in(node, "acls"), path))


def _entries(items: list[Json], path: str) -> Iterator[AccessControlEntry]:
    for item in items:
        if not isinstance(item, dict):
            raise BadZnode(f"{path} has an entry that is not an object: {item!r}")
        principal, host, operation, permission = (
            str_in(item, key) for key in ("principal", "host", "operation", "permissionType")
        )
        try:
            check_principal(principal)
        except ValueError as error:
            raise BadZnode(f"{path}: {error}") from error
        yield AccessControlEntry(
            principal, host, code_of_name(AclOperation, operation), code_of_name(AclPermissionType, permission)
        )


def encode_change(pattern: ResourcePattern) -> bytes:
    if pattern.pattern_type is PatternType.LITERAL:
        return f"{pattern.resource_type.name}:{pattern.name}".encode()
    return encode(
        {
            "version": VERSION,
            "resourceType": pattern.resource_type.name,
            "name": pattern.name,
            "patternType": pattern.pattern_type.name,
        }
    )


def decode_change(data: bytes | None, changes_path: str) -> ResourcePattern:
    """The pattern that has changed. Raises: BadZnode."""
    if changes_path == CHANGES[PatternType.LITERAL]:
        kind, colon, name = (data or b"").decode(errors="replace").partition(":")
        if not colon:
            raise BadZnode(f"expected a string in format ResourceType:ResourceName but got {data!r}")
        pattern_type = PatternType.LITERAL
    else:
        node = json_object(data, changes_path)
        if int_in(node, "version") > VERSION:
            raise BadZnode(f"Acl change event received for unsupported version: {data!r}")
        kind, name = str_in(node, "resourceType"), str_in(node, "name")
        pattern_type = next((p for p in STORES if p.name == str_in(node, "patternType").upper()), PatternType.UNKNOWN)
    resource_type = next((known for known in _TYPES if known.name == kind.upper()), ResourceType.UNKNOWN)
    if not (resource_type and pattern_type and name):
        raise BadZnode(f"malformed ACL change below {changes_path}: {data!r}")
    return ResourcePattern(resource_type, name, pattern_type)


def resource_type_of(name: str) -> ResourceType:
    """The type of a child of a store; UNKNOWN for a node that is no type."""
    found = code_of_name(ResourceType, name)
    return found if found in _TYPES else ResourceType.UNKNOWN
