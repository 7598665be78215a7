"""Heartbeat (key 12), served: 0-4.

v3: static members. v4: flexible encoding.

Kafka: KafkaApis.handleHeartbeatRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import require
from odradek.broker.apis.groups.group_requests import group_context
from odradek.controller.model.acls import AclOperation, ResourceType

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.messages.heartbeat import HeartbeatRequest


def handle(broker: Services, ctx: RequestContext, request: HeartbeatRequest) -> None:
    require(broker, ctx, AclOperation.READ, ResourceType.GROUP, request.group_id)
    broker.group_coordinator.heartbeat(group_context(ctx), request, ctx.reply)
