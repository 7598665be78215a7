"""ListGroups (key 16), served: 0-5.

v4: filter by state. v5: filter by group type (KIP-848).

Kafka: KafkaApis.handleListGroupsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import authorize
from odradek.broker.apis.services import in_slices
from odradek.controller.model.acls import CLUSTER_NAME, AclOperation, ResourceType

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.messages.list_groups import ListGroupsRequest, ListGroupsResponse
    from odradek.timer.sliced_work import Steps


@in_slices
def handle(broker: Services, ctx: RequestContext, request: ListGroupsRequest) -> Steps:
    """A client that may describe the cluster gets all groups, any other those that it may describe."""
    describe = AclOperation.DESCRIBE
    if authorize(broker, ctx, describe, ResourceType.CLUSTER, CLUSTER_NAME, log_if_denied=False):
        yield from broker.group_coordinator.list_groups(request, ctx.reply)
        return
    responses: list[ListGroupsResponse] = []
    yield from broker.group_coordinator.list_groups(request, responses.append)
    (response,) = responses
    groups, response.groups = response.groups, []
    for group in groups:
        if authorize(broker, ctx, describe, ResourceType.GROUP, group.group_id, log_if_denied=False):
            response.groups.append(group)
        yield None
    ctx.reply(response)
