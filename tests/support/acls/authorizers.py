"""Authorizers, each with a session of its own, on one metadata tree in memory."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from odradek.broker.security.authorizer.acl_authorizer import AclAuthorizer
from odradek.broker.security.authorizer.ports import Action, AuthorizableRequestContext
from odradek.controller.model.acls import (
    AccessControlEntry,
    AccessControlEntryFilter,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from odradek.controller.model.broker_info import SecurityProtocol
from odradek.controller.tree.embedded_tree import EmbeddedTree, TreeDatabase
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.support.clusters.controller_cluster import ControllerCluster, controller_cluster

ALLOW, DENY = AclPermissionType.ALLOW, AclPermissionType.DENY
LITERAL, PREFIXED = PatternType.LITERAL, PatternType.PREFIXED
READ, WRITE = AclOperation.READ, AclOperation.WRITE
TOPIC = ResourceType.TOPIC
ALL = AclBindingFilter(
    ResourcePatternFilter(ResourceType.ANY, None, PatternType.ANY),
    AccessControlEntryFilter(None, None, AclOperation.ANY, AclPermissionType.ANY),
)
NODE = "/kafka-acl/Topic/t"


def client_of(principal: str = "User:a", host: str = "10.0.0.1") -> AuthorizableRequestContext:
    return AuthorizableRequestContext(
        principal, host, "PLAINTEXT", SecurityProtocol.PLAINTEXT, ApiKey.FETCH, 12, "client", 7
    )


def binding(
    name: str = "t",
    operation: AclOperation = READ,
    permission: AclPermissionType = ALLOW,
    pattern_type: PatternType = LITERAL,
    principal: str = "User:a",
) -> AclBinding:
    return AclBinding(
        ResourcePattern(TOPIC, name, pattern_type), AccessControlEntry(principal, "*", operation, permission)
    )


def filter_of(name: str | None, pattern_type: PatternType = LITERAL) -> AclBindingFilter:
    return AclBindingFilter(ResourcePatternFilter(TOPIC, name, pattern_type), ALL.entry)


class Brokers:
    def __init__(self, cluster: ControllerCluster) -> None:
        self.cluster = cluster
        self.trees: list[EmbeddedTree] = []
        self.authorizers: list[AclAuthorizer] = []

    async def start(self, **settings: str) -> AclAuthorizer:
        database: TreeDatabase = self.cluster.database
        tree = await database.connect()
        authorizer = AclAuthorizer(MetadataClient(tree), self.cluster.clock, self.cluster.timer, lambda n: n - 1)
        authorizer.configure({key.replace("_", "."): text for key, text in settings.items()})
        self.trees.append(tree)
        self.authorizers.append(authorizer)
        await authorizer.start()
        return authorizer

    @property
    def client(self) -> MetadataClient:
        return MetadataClient(self.trees[0])

    async def settle(self) -> None:
        """Let watches fire and everything that follows from them happen."""
        for _ in range(30):
            await self.client.exists("/")
            await asyncio.sleep(0)


@asynccontextmanager
async def brokers() -> AsyncIterator[Brokers]:
    async with controller_cluster() as cluster:
        started = Brokers(cluster)
        try:
            yield started
        finally:
            for authorizer in started.authorizers:
                authorizer.close()


def may(authorizer: AclAuthorizer, name: str = "t", operation: AclOperation = READ, principal: str = "User:a") -> bool:
    (answer,) = authorizer.authorize(client_of(principal), [Action(operation, TOPIC, name)])
    return answer


def stored(authorizer: AclAuthorizer) -> list[AclBinding]:
    return [found for found in authorizer.acls(ALL) if found is not None]


async def create(authorizer: AclAuthorizer, *bindings: AclBinding) -> list[ErrorCode | None]:
    results = await authorizer.create_acls(client_of(), bindings)
    return [None if result.error is None else result.error.code for result in results]
