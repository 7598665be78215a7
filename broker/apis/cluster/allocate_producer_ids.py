"""AllocateProducerIds (key 67), served: 0. A broker asks the controller for a block of producer ids.

Kafka: KafkaApis.handleAllocateProducerIdsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import authorize_cluster
from odradek.controller.model.acls import AclOperation
from odradek.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext


def handle(broker: Services, ctx: RequestContext, request: AllocateProducerIdsRequest) -> None:
    authorize_cluster(broker, ctx, AclOperation.CLUSTER_ACTION)
    broker.spawn(ctx, request, _allocate(broker, ctx, request))


async def _allocate(broker: Services, ctx: RequestContext, request: AllocateProducerIdsRequest) -> None:
    block = await broker.controller.allocate_producer_ids(request.broker_id, request.broker_epoch)
    ctx.reply(AllocateProducerIdsResponse(producer_id_start=block.block_start, producer_id_len=block.size))
