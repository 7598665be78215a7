"""The request context that the group coordinator gets beside the request's body."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.coordinator.group.context import GroupRequestContext

if TYPE_CHECKING:
    from odradek.broker.network.requests.request import RequestContext


def group_context(ctx: RequestContext) -> GroupRequestContext:
    return GroupRequestContext(
        client_id=ctx.header.client_id,
        client_host=ctx.connection.client_host,
        api_version=ctx.header.api_version,
    )
