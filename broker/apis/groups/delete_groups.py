"""DeleteGroups (key 42), served: 0-2. A group named twice is deleted once. v2: flexible encoding.

Kafka: KafkaApis.handleDeleteGroupsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import filter_by_authorized
from odradek.broker.apis.services import in_slices
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.protocol.codec.arrays.mapped import Outcomes
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from odradek.timer.repeated_items import each_once

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.timer.sliced_work import Steps


@in_slices
def handle(broker: Services, ctx: RequestContext, request: DeleteGroupsRequest) -> Steps:
    names = yield from each_once(request.groups_names)
    authorized = yield from filter_by_authorized(broker, ctx, AclOperation.DELETE, ResourceType.GROUP, names)
    results, refused = Outcomes(_result), Outcomes(_result)
    for group_id in names:
        if group_id in authorized:
            results.add(group_id, broker.group_coordinator.delete_group(group_id))
        else:
            refused.add(group_id, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        yield None
    results.extend(refused)
    ctx.reply(DeleteGroupsResponse(results=results))


def _result(group_id: str, code: int) -> DeletableGroupResult:
    return DeletableGroupResult(group_id=group_id, error_code=code)
