"""DescribeGroups (key 15), served: 0-5.

v3: authorized operations. v4: group instance ids. An unknown group is described as Dead, without an error.

Kafka: KafkaApis.handleDescribeGroupsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import authorize, authorized_operations
from odradek.broker.apis.services import in_slices
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.protocol.codec.arrays.mapped import Outcomes
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_groups import (
    DescribedGroup,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
)

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.timer.sliced_work import Steps

FIRST_AUTHORIZED_OPERATIONS_VERSION = 3


@in_slices
def handle(broker: Services, ctx: RequestContext, request: DescribeGroupsRequest) -> Steps:
    tells_operations = (
        request.include_authorized_operations and ctx.header.api_version >= FIRST_AUTHORIZED_OPERATIONS_VERSION
    )

    def describe(group_id: str, error: int = ErrorCode.NONE) -> DescribedGroup:
        if error != ErrorCode.NONE:
            return DescribedGroup(group_id=group_id, error_code=error)
        group = broker.group_coordinator.describe_group(group_id)
        if tells_operations and group.error_code == ErrorCode.NONE:
            group.authorized_operations = authorized_operations(broker, ctx, ResourceType.GROUP, group.group_id)
        return group

    groups, refused = Outcomes(describe), Outcomes(describe)
    described: dict[str, DescribedGroup] = {}
    """Those with members. A request may name one large group 100,000 times."""
    for group_id in request.groups:
        yield None
        if group_id in described:
            groups.append(described[group_id])
        elif not authorize(broker, ctx, AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
            refused.add(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        elif (group := describe(group_id)).members:
            described[group_id] = group
            groups.append(group)
        else:  # it is described again when it is encoded: a request may name 200,000 such groups
            groups.add(group_id, ErrorCode.NONE)
    refused.extend(groups)
    ctx.reply(DescribeGroupsResponse(groups=refused))
