"""The rights of a client in tests.

The client and the administrator are both `User:ANONYMOUS`, on a listener without authentication; their addresses tell
them apart. The broker itself has the administrator's address and so all rights.
"""

from __future__ import annotations

from typing import NamedTuple

from odradek.controller.model.acls import CLUSTER_NAME, WILDCARD, AclOperation, ResourceType

ADMINISTRATOR = "127.0.0.1"
CLIENT = "127.0.0.2"

RESOURCE_TYPES = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
    ResourceType.DELEGATION_TOKEN,
)


class Right(NamedTuple):
    """One operation on the resources with that name; `*` for all of them."""

    operation: AclOperation
    resource_type: ResourceType
    name: str


def topic(operation: AclOperation, name: str) -> Right:
    return Right(operation, ResourceType.TOPIC, name)


def group(operation: AclOperation, name: str) -> Right:
    return Right(operation, ResourceType.GROUP, name)


def transactional_id(operation: AclOperation, name: str) -> Right:
    return Right(operation, ResourceType.TRANSACTIONAL_ID, name)


def cluster(operation: AclOperation) -> Right:
    return Right(operation, ResourceType.CLUSTER, CLUSTER_NAME)


EVERYTHING = tuple(
    Right(AclOperation.ALL, kind, CLUSTER_NAME if kind is ResourceType.CLUSTER else WILDCARD) for kind in RESOURCE_TYPES
)
