"""CreateAcls (key 30), served: 0-3. SECURITY_DISABLED without an authorizer.

Kafka: KafkaApis.handleCreateAcls, AclApis.handleCreateAcls.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import authorize_cluster, configured_authorizer, request_context
from odradek.broker.apis.security.acl_codes import is_readable_creation
from odradek.controller.loop_turns import in_turns, result_in_turns
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
from odradek.timer.sliced_work import distinct

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.messages.create_acls import AclCreation, CreateAclsRequest


def handle(broker: Services, ctx: RequestContext, request: CreateAclsRequest) -> None:
    broker.spawn(ctx, request, _create(broker, ctx, request))


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


async def _create(broker: Services, ctx: RequestContext, request: CreateAclsRequest) -> None:
    async for creation in in_turns(request.creations):
        if not is_readable_creation(creation):
            ctx.close_connection()
            return
    authorize_cluster(broker, ctx, AclOperation.ALTER)
    authorizer = configured_authorizer(broker, "No Authorizer is configured.")
    bindings = [_binding(creation) async for creation in in_turns(request.creations)]
    errors: dict[AclBinding, KafkaError] = {}
    async for binding in in_turns(bindings):
        if (error := _why_refused(binding.pattern)) is not None:
            errors[binding] = error
    different = await result_in_turns(distinct(bindings))
    valid = [binding async for binding in in_turns(different) if binding not in errors]
    results = await authorizer.create_acls(request_context(ctx), valid)
    async for binding, result in in_turns(zip(valid, results, strict=True)):
        if result.error is not None:
            errors[binding] = result.error
    answers = [_result(errors.get(binding)) async for binding in in_turns(bindings)]
    ctx.reply(CreateAclsResponse(results=answers))


def _why_refused(pattern: ResourcePattern) -> KafkaError | None:
    if pattern.resource_type is ResourceType.CLUSTER and pattern.name != CLUSTER_NAME:
        message = f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
        return KafkaError(ErrorCode.INVALID_REQUEST, message)
    return None if pattern.name else KafkaError(ErrorCode.INVALID_REQUEST, "Invalid empty resource name")


def _result(error: KafkaError | None) -> AclCreationResult:
    if error is None:
        return AclCreationResult()
    return AclCreationResult(error_code=error.code, error_message=error.specific_message)
