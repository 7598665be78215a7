"""IncrementalAlterConfigs (key 44), served: 0-1.

Changes a resource key by key: set (0), delete (1), and for lists append (2) and subtract (3). The levels of a broker's
loggers (KIP-412) are changed here too; they last until the broker stops.

Kafka: KafkaApis.handleIncrementalAlterConfigsRequest.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from odradek.broker.apis.configs.alter_answers import answers
from odradek.broker.apis.configs.config_rights import require_right
from odradek.broker.apis.configs.runtime_loggers import alter_loggers
from odradek.controller.admin.config_admin import ConfigChange, ResourceChanges
from odradek.protocol.codec.arrays.mapped import Mapped
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext


def handle(broker: Services, ctx: RequestContext, request: IncrementalAlterConfigsRequest) -> None:
    broker.spawn(ctx, request, _alter(broker, ctx, request))


async def _alter(broker: Services, ctx: RequestContext, request: IncrementalAlterConfigsRequest) -> None:
    outcomes = await broker.config_admin.incremental_alter_configs(
        Mapped(_changes, request.resources),
        validate_only=request.validate_only,
        require_right=partial(require_right, broker, ctx),
        alter_loggers=partial(_alter_loggers, broker, ctx, validate_only=request.validate_only),
    )
    responses = answers(AlterConfigsResourceResponse, request.resources, outcomes)
    ctx.reply(IncrementalAlterConfigsResponse(responses=responses))


def _changes(resource: AlterConfigsResource) -> ResourceChanges:
    return ResourceChanges(resource.resource_type, resource.resource_name, Mapped(_change, resource.configs))


def _change(config: AlterableConfig) -> ConfigChange:
    return ConfigChange(config.name, config.value, config.config_operation)


def _alter_loggers(broker: Services, ctx: RequestContext, change: ResourceChanges, *, validate_only: bool) -> None:
    require_right(broker, ctx, change)
    alter_loggers(broker.logger_levels, change, broker.broker_id, validate_only=validate_only)
