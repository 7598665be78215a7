"""DeleteGroups (key 42), served: 0-2. A group named twice is deleted once. v2: flexible encoding."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.group_requests import group_context
from odradek.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)

if TYPE_CHECKING:
    from odradek.broker.request import RequestContext
    from odradek.broker.services import Services
    from odradek.protocol.errors import ErrorCode


def handle(broker: Services, ctx: RequestContext, request: DeleteGroupsRequest) -> None:
    request.groups_names = list(dict.fromkeys(request.groups_names))
    broker.group_coordinator.delete_groups(group_context(ctx), request, ctx.reply)


def error_response(
    request: DeleteGroupsRequest, version: int, code: ErrorCode, message: str | None
) -> DeleteGroupsResponse:
    return DeleteGroupsResponse(
        results=[DeletableGroupResult(group_id=group_id, error_code=code) for group_id in request.groups_names]
    )
