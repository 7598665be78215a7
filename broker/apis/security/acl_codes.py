"""Fields of ACL requests as values, with the checks that Apache Kafka makes when it reads a request.

A request that fails a check closes its connection, as there.

Kafka: CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.controller.model.acls import (
    AccessControlEntryFilter,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePatternFilter,
    ResourceType,
)

if TYPE_CHECKING:
    from odradek.protocol.messages.create_acls import AclCreation
    from odradek.protocol.messages.delete_acls import DeleteAclsFilter
    from odradek.protocol.messages.describe_acls import DescribeAclsRequest


def is_readable_creation(creation: AclCreation) -> bool:
    """Whether every code is there. Kafka: CreateAclsRequest.validate."""
    codes = (creation.resource_pattern_type, creation.resource_type, creation.permission_type, creation.operation)
    return 0 not in codes


def is_readable_filter(asked: DeleteAclsFilter | DescribeAclsRequest, version: int) -> bool:
    """Whether every code is there. Version 0 knows no types of patterns: ANY becomes LITERAL.

    Kafka: DeleteAclsRequest.normalizeAndValidate, DescribeAclsRequest.normalizeAndValidate.
    """
    if version == 0:
        if asked.pattern_type_filter not in (PatternType.ANY, PatternType.LITERAL):
            return False
        asked.pattern_type_filter = PatternType.LITERAL
    codes = (asked.pattern_type_filter, asked.resource_type_filter, asked.operation, asked.permission_type)
    return 0 not in codes


def filter_of(asked: DeleteAclsFilter | DescribeAclsRequest) -> AclBindingFilter:
    pattern = ResourcePatternFilter(
        ResourceType(asked.resource_type_filter), asked.resource_name_filter, PatternType(asked.pattern_type_filter)
    )
    entry = AccessControlEntryFilter(
        asked.principal_filter,
        asked.host_filter,
        AclOperation(asked.operation),
        AclPermissionType(asked.permission_type),
    )
    return AclBindingFilter(pattern, entry)
