"""AlterConfigs (key 33), served: 0-2. Replaces all configs of a resource; v2: flexible encoding.

Kafka: KafkaApis.handleAlterConfigsRequest.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.apis.configs.config_rights import require_right
from odradek.controller.admin.config_admin import ConfigChange, ResourceChanges
from odradek.controller.loop_turns import in_turns
from odradek.protocol.messages.alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext


def handle(broker: Services, ctx: RequestContext, request: AlterConfigsRequest) -> None:
    broker.spawn(ctx, request, _alter(broker, ctx, request))


async def _alter(broker: Services, ctx: RequestContext, request: AlterConfigsRequest) -> None:
    resources = []
    async for resource in in_turns(request.resources):
        changes = [ConfigChange(config.name, config.value) async for config in in_turns(resource.configs)]
        resources.append(ResourceChanges(resource.resource_type, resource.resource_name, changes))
    errors = await broker.config_admin.alter_configs(
        resources, validate_only=request.validate_only, require_right=partial(require_right, broker, ctx)
    )
    responses = []
    async for resource, error in in_turns(zip(request.resources, errors, strict=True)):
        response = AlterConfigsResourceResponse(
            resource_type=resource.resource_type,
            resource_name=resource.resource_name,
            error_code=0 if error is None else error.code,
            error_message=None if error is None else error.specific_message,
        )
        responses.append(response)
    ctx.reply(AlterConfigsResponse(responses=responses))
