"""JoinGroup (key 11), served: 0-9.

v1: the rebalance timeout. v4: a member id is required before the join (KIP-394). v5: static members (KIP-345). v7: the
protocol type in the answer. v8: a reason (KIP-800). v9: skip_assignment for a returning static leader (KIP-814).

Kafka: KafkaApis.handleJoinGroupRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import require
from odradek.broker.apis.groups.group_requests import group_context
from odradek.broker.apis.services import SMALL_REQUEST_BYTES
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.protocol.errors import ErrorCode
from odradek.protocol.shared_elements import shared
from odradek.timer.sliced_work import listed

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.coordinator.group.context import GroupRequestContext
    from odradek.protocol.messages.join_group import JoinGroupRequest
    from odradek.timer.sliced_work import Steps


def handle(broker: Services, ctx: RequestContext, request: JoinGroupRequest) -> None:
    require(broker, ctx, AclOperation.READ, ResourceType.GROUP, request.group_id)
    if ctx.size <= SMALL_REQUEST_BYTES:
        broker.group_coordinator.join_group(_context(ctx), request, ctx.reply)
    elif broker.group_coordinator.join_refusal(request) != ErrorCode.NONE:
        broker.group_coordinator.join_group(_context(ctx), request, ctx.reply, ())
    else:
        broker.in_slices(ctx, request, _join(broker, ctx, request))


def _join(broker: Services, ctx: RequestContext, request: JoinGroupRequest) -> Steps:
    protocols = yield from listed(shared((protocol.name, protocol.metadata) for protocol in request.protocols))
    broker.group_coordinator.join_group(_context(ctx), request, ctx.reply, tuple(protocols))


def _context(ctx: RequestContext) -> GroupRequestContext:
    """With the address of the client as Java writes it: the group's record and DescribeGroups show it."""
    context = group_context(ctx)
    if ":" not in context.client_host:
        return context
    from odradek.broker.security.authorizer.client_host import java_host  # not needed by a start

    return context._replace(client_host=java_host(context.client_host))
