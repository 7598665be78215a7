"""ControlledShutdown (key 7), served: 0-3. A broker asks the controller to move its leaderships away; v2: broker epoch.

A broker that is not the controller answers STALE_CONTROLLER_EPOCH.

Kafka: KafkaApis.handleControlledShutdownRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import authorize_cluster
from odradek.controller.model.acls import AclOperation
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
    RemainingPartition,
)

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext


def handle(broker: Services, ctx: RequestContext, request: ControlledShutdownRequest) -> None:
    authorize_cluster(broker, ctx, AclOperation.CLUSTER_ACTION)
    broker.spawn(ctx, request, _shut_down(broker, ctx, request))


async def _shut_down(broker: Services, ctx: RequestContext, request: ControlledShutdownRequest) -> None:
    try:
        remaining = await broker.controller.controlled_shutdown(request.broker_id, request.broker_epoch)
    except KafkaError as error:
        raise (
            KafkaError(ErrorCode.STALE_CONTROLLER_EPOCH) if error.code == ErrorCode.NOT_CONTROLLER else error
        ) from None
    ctx.reply(
        ControlledShutdownResponse(
            remaining_partitions=[
                RemainingPartition(topic_name=tp.topic, partition_index=tp.partition) for tp in remaining
            ]
        )
    )
