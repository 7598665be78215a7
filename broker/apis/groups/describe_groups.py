"""DescribeGroups (key 15), served: 0-5.

v3: authorized operations. v4: group instance ids. An unknown group is described as Dead, without an error.

Kafka: KafkaApis.handleDescribeGroupsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import authorize, authorized_operations
from odradek.broker.apis.services import in_slices
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.protocol.codec.mapped import Mapped
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.timer.sliced_work import Steps

FIRST_AUTHORIZED_OPERATIONS_VERSION = 3


@in_slices
def handle(broker: Services, ctx: RequestContext, request: DescribeGroupsRequest) -> Steps:
    tells_operations = (
        request.include_authorized_operations and ctx.header.api_version >= FIRST_AUTHORIZED_OPERATIONS_VERSION
    )
    described: dict[str, DescribedGroup] = {}
    """Those with members. A request may name one large group 100,000 times."""
    groups: list[str | DescribedGroup] = []
    """A group without members is described again when it is encoded: a request may name 200,000 of them."""
    refused: list[str] = []

    def describe(group_id: str) -> DescribedGroup:
        group = broker.group_coordinator.describe_group(group_id)
        if tells_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = authorized_operations(broker, ctx, ResourceType.GROUP, group.group_id)
        return group

    for group_id in request.groups:
        yield None
        if group_id in described:
            groups.append(described[group_id])
        elif not authorize(broker, ctx, AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
            refused.append(group_id)
        elif (group := describe(group_id)).members:
            described[group_id] = group
            groups.append(group)
        else:
            groups.append(group_id)

    def answer(number: int) -> DescribedGroup:
        if number < len(refused):
            return DescribedGroup(group_id=refused[number], error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
        group = groups[number - len(refused)]
        return describe(group) if isinstance(group, str) else group

    ctx.reply(DescribeGroupsResponse(groups=Mapped(answer, range(len(refused) + len(groups)))))


def error_response(
    request: DescribeGroupsRequest, version: int, code: ErrorCode, message: str | None
) -> Generator[None, None, DescribeGroupsResponse]:
    yield
    answers = Mapped(lambda group_id: DescribedGroup(group_id=group_id, error_code=code), request.groups)
    return DescribeGroupsResponse(groups=answers)
