"""SyncGroup (key 14), served: 0-5.

v3: static members. v5: protocol type and name are checked and echoed (KIP-559).

Kafka: KafkaApis.handleSyncGroupRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.groups.group_requests import group_context

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.request import RequestContext
    from odradek.protocol.messages.sync_group import SyncGroupRequest


def handle(broker: Services, ctx: RequestContext, request: SyncGroupRequest) -> None:
    broker.group_coordinator.sync_group(group_context(ctx), request, ctx.reply)
