"""An authorizer that allows what a test says and remembers what it was asked."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from odradek.broker.security.authorizer.ports import (
    AclCreateResult,
    AclDeleteResult,
    Action,
    AuthorizableRequestContext,
)
from odradek.controller.model.acls import AclBinding, AclBindingFilter, AclOperation, ResourceType
from tests.support.transcripts.rights import Right


class ScriptedAuthorizer:
    """Implements `Authorizer`. A right is for exactly that operation on exactly that resource."""

    acl_count = -1

    def __init__(self, *rights: Right) -> None:
        self.rights: Iterable[Right] = rights
        self.asked: list[Action] = []
        self.asked_by_type: list[tuple[AclOperation, ResourceType]] = []

    def authorize(self, ctx: AuthorizableRequestContext, actions: Sequence[Action], /) -> list[bool]:
        self.asked += actions
        return [(action.operation, action.resource_type, action.resource_name) in self.rights for action in actions]

    def authorize_by_resource_type(
        self, ctx: AuthorizableRequestContext, operation: AclOperation, resource_type: ResourceType, /
    ) -> bool:
        self.asked_by_type.append((operation, resource_type))
        return any(right[:2] == (operation, resource_type) for right in self.rights)

    async def create_acls(
        self, ctx: AuthorizableRequestContext, bindings: Sequence[AclBinding], /
    ) -> list[AclCreateResult]:
        raise NotImplementedError

    async def delete_acls(
        self, ctx: AuthorizableRequestContext, filters: Sequence[AclBindingFilter], /
    ) -> list[AclDeleteResult]:
        raise NotImplementedError

    def acls(self, acl_filter: AclBindingFilter, /) -> list[AclBinding]:
        return []

    def close(self) -> None: ...
