"""DeleteAcls (key 31), served: 0-3. SECURITY_DISABLED without an authorizer.

Kafka: KafkaApis.handleDeleteAcls, AclApis.handleDeleteAcls, DeleteAclsResponse.filterResult.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import authorize_cluster, configured_authorizer, request_context
from odradek.broker.apis.security.acl_codes import filter_of, is_readable_filter
from odradek.controller.loop_turns import in_turns
from odradek.controller.model.acls import AclOperation
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsMatchingAcl, DeleteAclsResponse

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.broker.security.authorizer.ports import AclDeleteResult
    from odradek.controller.model.acls import AclBinding
    from odradek.protocol.messages.delete_acls import DeleteAclsRequest


def handle(broker: Services, ctx: RequestContext, request: DeleteAclsRequest) -> None:
    broker.spawn(ctx, request, _delete(broker, ctx, request))


async def _delete(broker: Services, ctx: RequestContext, request: DeleteAclsRequest) -> None:
    async for asked in in_turns(request.filters):
        if not is_readable_filter(asked, ctx.header.api_version):
            ctx.close_connection()
            return
    authorize_cluster(broker, ctx, AclOperation.ALTER)
    authorizer = configured_authorizer(broker, "No Authorizer is configured.")
    filters = [filter_of(asked) async for asked in in_turns(request.filters)]
    results = await authorizer.delete_acls(request_context(ctx), filters)
    ctx.reply(DeleteAclsResponse(filter_results=[await _result(result) async for result in in_turns(results)]))


async def _result(result: AclDeleteResult) -> DeleteAclsFilterResult:
    code, message = _code_and_message(result.error)
    matching = [_matching(binding, error) async for binding, error in in_turns(result.deleted)]
    return DeleteAclsFilterResult(error_code=code, error_message=message, matching_acls=matching)


def _matching(binding: AclBinding, error: KafkaError | None) -> DeleteAclsMatchingAcl:
    (resource_type, name, pattern_type), (principal, host, operation, permission) = binding
    code, message = _code_and_message(error)
    return DeleteAclsMatchingAcl(
        error_code=code,
        error_message=message,
        resource_type=resource_type,
        resource_name=name,
        pattern_type=pattern_type,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=permission,
    )


def _code_and_message(error: KafkaError | None) -> tuple[ErrorCode, str | None]:
    return (ErrorCode.NONE, None) if error is None else (error.code, error.specific_message)
