"""ACLs of a cluster for tests of commands."""

from __future__ import annotations

from odradek.broker.apis.security.acl_codes import filter_of
from odradek.controller.model.acls import (
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from odradek.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsRequest,
    DeleteAclsResponse,
)
from odradek.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from tests.support.clusters.admin_cluster import AdminCluster


class AdminAcls:
    """Stores bindings; `error` is that of every answer."""

    def __init__(self, cluster: AdminCluster) -> None:
        self.bindings: set[AclBinding] = set()
        self.error = ErrorCode.NONE
        cluster.on(DescribeAclsRequest, self._describe)
        cluster.on(CreateAclsRequest, self._create)
        cluster.on(DeleteAclsRequest, self._delete)

    def _describe(self, broker_id: int, request: DescribeAclsRequest) -> DescribeAclsResponse:
        of_pattern, of_entry = filter_of(request)
        found = [one for one in self.bindings if of_pattern.matches(one.pattern) and of_entry.matches(one.entry)]
        return DescribeAclsResponse(
            error_code=self.error,
            error_message=None,
            resources=[
                DescribeAclsResource(
                    resource_type=pattern.resource_type,
                    resource_name=pattern.name,
                    pattern_type=pattern.pattern_type,
                    acls=[
                        AclDescription(
                            principal=entry.principal,
                            host=entry.host,
                            operation=entry.operation,
                            permission_type=entry.permission_type,
                        )
                    ],
                )
                for pattern, entry in found
            ],
        )

    def _create(self, broker_id: int, request: CreateAclsRequest) -> CreateAclsResponse:
        for new in request.creations:
            pattern = ResourcePattern(
                ResourceType(new.resource_type), new.resource_name, PatternType(new.resource_pattern_type)
            )
            permission = AclPermissionType(new.permission_type)
            entry = AccessControlEntry(new.principal, new.host, AclOperation(new.operation), permission)
            if not self.error:
                self.bindings.add(AclBinding(pattern, entry))
        results = [AclCreationResult(error_code=self.error, error_message=None) for _ in request.creations]
        return CreateAclsResponse(results=results)

    def _delete(self, broker_id: int, request: DeleteAclsRequest) -> DeleteAclsResponse:
        results = []
        for of_pattern, of_entry in map(filter_of, request.filters):
            gone = {one for one in self.bindings if of_pattern.matches(one.pattern) and of_entry.matches(one.entry)}
            self.bindings -= gone
            matching = [DeleteAclsMatchingAcl(error_message=None, resource_name=one.pattern.name) for one in gone]
            results.append(DeleteAclsFilterResult(error_code=self.error, error_message=None, matching_acls=matching))
        return DeleteAclsResponse(filter_results=results)
