"""AlterConfigs (key 33), served: 0-2. Replaces all configs of a resource; v2: flexible encoding.

Kafka: KafkaApis.handleAlterConfigsRequest.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.apis.configs.alter_answers import answers
from odradek.broker.apis.configs.config_rights import require_right
from odradek.controller.admin.config_admin import ConfigChange, ResourceChanges
from odradek.protocol.codec.arrays.mapped import Mapped
from odradek.protocol.messages.alter_configs import (
    AlterableConfig,
    AlterConfigsRequest,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext


def handle(broker: Services, ctx: RequestContext, request: AlterConfigsRequest) -> None:
    broker.spawn(ctx, request, _alter(broker, ctx, request))


async def _alter(broker: Services, ctx: RequestContext, request: AlterConfigsRequest) -> None:
    outcomes = await broker.config_admin.alter_configs(
        Mapped(_changes, request.resources),
        validate_only=request.validate_only,
        require_right=partial(require_right, broker, ctx),
    )
    responses = answers(AlterConfigsResourceResponse, request.resources, outcomes)
    ctx.reply(AlterConfigsResponse(responses=responses))


def _changes(resource: AlterConfigsResource) -> ResourceChanges:
    return ResourceChanges(resource.resource_type, resource.resource_name, Mapped(_change, resource.configs))


def _change(config: AlterableConfig) -> ConfigChange:
    return ConfigChange(config.name, config.value)
