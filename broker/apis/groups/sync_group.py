"""SyncGroup (key 14), served: 0-5.

v3: static members. v5: protocol type and name are checked and echoed (KIP-559).

Kafka: KafkaApis.handleSyncGroupRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import require
from odradek.broker.apis.groups.group_requests import group_context
from odradek.controller.model.acls import AclOperation, ResourceType

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.messages.sync_group import SyncGroupRequest


FIRST_PROTOCOL_VERSION = 5


def handle(broker: Services, ctx: RequestContext, request: SyncGroupRequest) -> None:
    protocol = (request.protocol_type, request.protocol_name)
    if ctx.header.api_version < FIRST_PROTOCOL_VERSION or None not in protocol:  # else the coordinator refuses it
        require(broker, ctx, AclOperation.READ, ResourceType.GROUP, request.group_id)
    broker.group_coordinator.sync_group(group_context(ctx), request, ctx.reply)
