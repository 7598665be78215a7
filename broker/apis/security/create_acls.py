"""CreateAcls (key 30), served: 0-3. SECURITY_DISABLED without an authorizer.

Kafka: KafkaApis.handleCreateAcls, AclApis.handleCreateAcls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import authorize_cluster, configured_authorizer, request_context
from odradek.broker.apis.security.acl_codes import is_readable_creation
from odradek.controller.model.acls import (
    CLUSTER_NAME,
    AccessControlEntry,
    AclBinding,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.create_acls import AclCreationResult, CreateAclsResponse

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.broker.security.authorizer.ports import Authorizer
    from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest


def handle(broker: Services, ctx: RequestContext, request: CreateAclsRequest) -> None:
    if not all(map(is_readable_creation, request.creations)):
        ctx.close_connection()
        return
    authorize_cluster(broker, ctx, AclOperation.ALTER)
    authorizer = configured_authorizer(broker, "No Authorizer is configured.")
    bindings = [_binding(creation) for creation in request.creations]
    broker.spawn(ctx, request, _create(authorizer, ctx, bindings))


def _binding(creation: AclCreation) -> AclBinding:
    """Raises: ValueError for codes that only filters may have. Kafka: CreateAclsRequest.aclBinding."""
    pattern = ResourcePattern(
        ResourceType(creation.resource_type), creation.resource_name, PatternType(creation.resource_pattern_type)
    )
    entry = AccessControlEntry(
        creation.principal,
        creation.host,
        AclOperation(creation.operation),
        AclPermissionType(creation.permission_type),
    )
    if (
        pattern.resource_type is ResourceType.ANY
        or pattern.pattern_type in (PatternType.ANY, PatternType.MATCH)
        or entry.operation is AclOperation.ANY
        or entry.permission_type is AclPermissionType.ANY
    ):
        raise ValueError(f"ACL binding with elements of a filter: {pattern} {entry}")
    return AclBinding(pattern, entry)


async def _create(authorizer: Authorizer, ctx: RequestContext, bindings: list[AclBinding]) -> None:
    errors = {binding: error for binding in bindings if (error := _why_refused(binding.pattern)) is not None}
    valid = [binding for binding in dict.fromkeys(bindings) if binding not in errors]
    results = await authorizer.create_acls(request_context(ctx), valid)
    errors.update(
        (binding, result.error) for binding, result in zip(valid, results, strict=True) if result.error is not None
    )
    ctx.reply(CreateAclsResponse(results=[_result(errors.get(binding)) for binding in bindings]))


def _why_refused(pattern: ResourcePattern) -> KafkaError | None:
    if pattern.resource_type is ResourceType.CLUSTER and pattern.name != CLUSTER_NAME:
        message = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
        return KafkaError(ErrorCode.INVALID_REQUEST, message)
    return None if pattern.name else KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty resource name")


def _result(error: KafkaError | None) -> AclCreationResult:
    if error is None:
        return AclCreationResult()
    return AclCreationResult(error_code=error.code, error_message=error.specific_message)
