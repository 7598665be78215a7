"""DescribeGroups (key 15), served: 0-5.

v3: authorized operations. v4: group instance ids. An unknown group is described as Dead, without an error.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorized_operations import GROUP_OPERATIONS
from odradek.broker.apis.group_requests import group_context
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

if TYPE_CHECKING:
    from odradek.broker.request import RequestContext
    from odradek.broker.services import Services

FIRST_AUTHORIZED_OPERATIONS_VERSION = 3


def handle(broker: Services, ctx: RequestContext, request: DescribeGroupsRequest) -> None:
    def respond(response: DescribeGroupsResponse) -> None:
        if request.include_authorized_operations and ctx.header.api_version >= FIRST_AUTHORIZED_OPERATIONS_VERSION:
            for group in response.groups:
                if group.error_code == ErrorCode.NONE:
                    group.authorized_operations = GROUP_OPERATIONS
        ctx.reply(response)

    broker.group_coordinator.describe_groups(group_context(ctx), request, respond)


def error_response(
    request: DescribeGroupsRequest, version: int, code: ErrorCode, message: str | None
) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(
        groups=[DescribedGroup(group_id=group_id, error_code=code) for group_id in request.groups]
    )
