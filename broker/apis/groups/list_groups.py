"""ListGroups (key 16), served: 0-5.

v4: filter by state. v5: filter by group type (KIP-848).

Kafka: KafkaApis.handleListGroupsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.services import in_slices

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.request import RequestContext
    from odradek.protocol.messages.list_groups import ListGroupsRequest
    from odradek.timer.sliced_work import Steps


@in_slices
def handle(broker: Services, ctx: RequestContext, request: ListGroupsRequest) -> Steps:
    yield from broker.group_coordinator.list_groups(request, ctx.reply)
