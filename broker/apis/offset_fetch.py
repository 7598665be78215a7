"""OffsetFetch (key 9), served: 0-9.

v0 reads offsets kept under /consumers in the metadata tree. v2: null topics mean all; an error on top. v5: leader
epochs. v7: require_stable (KIP-447). v8: many groups in one request. v9: member id and epoch of the new consumer
protocol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.group_requests import group_context

if TYPE_CHECKING:
    from odradek.broker.request import RequestContext
    from odradek.broker.services import Services
    from odradek.protocol.messages.offset_fetch import OffsetFetchRequest


def handle(broker: Services, ctx: RequestContext, request: OffsetFetchRequest) -> None:
    broker.group_coordinator.fetch_offsets(group_context(ctx), request, ctx.reply)
