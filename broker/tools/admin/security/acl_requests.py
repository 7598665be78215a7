"""Describes, creates and deletes ACLs.

Kafka: Admin.describeAcls, Admin.createAcls, Admin.deleteAcls.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from odradek.broker.tools.command.failures import check
from odradek.controller.model.acls import (
    AccessControlEntry,
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from odradek.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from odradek.protocol.messages.describe_acls import DescribeAclsRequest, DescribeAclsResponse

if TYPE_CHECKING:
    from odradek.broker.tools.admin.client.admin_client import AdminClient


async def describe_acls(client: AdminClient, wanted: AclBindingFilter) -> list[AclBinding]:
    """The bindings that match. Raises: CommandFailed."""
    pattern, entry = wanted
    request = DescribeAclsRequest(
        resource_type_filter=pattern.resource_type,
        resource_name_filter=pattern.name,
        pattern_type_filter=pattern.pattern_type,
        principal_filter=entry.principal,
        host_filter=entry.host,
        operation=entry.operation,
        permission_type=entry.permission_type,
    )
    response = await client.ask(request, DescribeAclsResponse)
    check(response.error_code, response.error_message, "Describing ACLs")
    return [
        AclBinding(
            ResourcePattern(
                ResourceType(resource.resource_type), resource.resource_name, PatternType(resource.pattern_type)
            ),
            AccessControlEntry(
                acl.principal, acl.host, AclOperation(acl.operation), AclPermissionType(acl.permission_type)
            ),
        )
        for resource in response.resources
        for acl in resource.acls
    ]


async def create_acls(client: AdminClient, bindings: Iterable[AclBinding]) -> None:
    """Raises: CommandFailed for the first binding that is refused."""
    wanted = list(bindings)
    creations = [
        AclCreation(
            resource_type=pattern.resource_type,
            resource_name=pattern.name,
            resource_pattern_type=pattern.pattern_type,
            principal=entry.principal,
            host=entry.host,
            operation=entry.operation,
            permission_type=entry.permission_type,
        )
        for pattern, entry in wanted
    ]
    response = await client.ask(CreateAclsRequest(creations=creations), CreateAclsResponse)
    for binding, result in zip(wanted, response.results, strict=True):
        check(result.error_code, result.error_message, f"Creating {binding.entry} for {binding.pattern}")


async def delete_acls(client: AdminClient, filters: Iterable[AclBindingFilter]) -> int:
    """Delete what the filters match; the number of deleted bindings. Raises: CommandFailed."""
    wanted = [
        DeleteAclsFilter(
            resource_type_filter=pattern.resource_type,
            resource_name_filter=pattern.name,
            pattern_type_filter=pattern.pattern_type,
            principal_filter=entry.principal,
            host_filter=entry.host,
            operation=entry.operation,
            permission_type=entry.permission_type,
        )
        for pattern, entry in filters
    ]
    response = await client.ask(DeleteAclsRequest(filters=wanted), DeleteAclsResponse)
    deleted = 0
    for result in response.filter_results:
        check(result.error_code, result.error_message, "Deleting ACLs")
        for acl in result.matching_acls:
            check(acl.error_code, acl.error_message, f"Deleting an ACL of {acl.resource_name}")
            deleted += 1
    return deleted
