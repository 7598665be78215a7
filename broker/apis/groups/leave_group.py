"""LeaveGroup (key 13), served: 0-5.

v3: a batch of members, each with its own error (KIP-345). v5: a reason (KIP-800).

Kafka: KafkaApis.handleLeaveGroupRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import require
from odradek.broker.apis.groups.group_requests import group_context
from odradek.broker.apis.services import SMALL_REQUEST_BYTES, now_or_in_slices
from odradek.controller.model.acls import AclOperation, ResourceType

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.messages.leave_group import LeaveGroupRequest


def handle(broker: Services, ctx: RequestContext, request: LeaveGroupRequest) -> None:
    require(broker, ctx, AclOperation.READ, ResourceType.GROUP, request.group_id)
    work = broker.group_coordinator.leave_group(group_context(ctx), request, ctx.reply)
    now_or_in_slices(broker, ctx, request, work, is_small=ctx.size <= SMALL_REQUEST_BYTES)
