"""AlterPartition (key 56), served: 0-3. A leader proposes a new ISR to the controller; v2: topics by id.

Kafka: KafkaApis.handleAlterPartitionRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import authorize_cluster
from odradek.controller.model.acls import AclOperation

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.messages.alter_partition import AlterPartitionRequest


def handle(broker: Services, ctx: RequestContext, request: AlterPartitionRequest) -> None:
    authorize_cluster(broker, ctx, AclOperation.CLUSTER_ACTION)

    async def alter() -> None:
        ctx.reply(await broker.controller.alter_partition(request, ctx.header.api_version))

    broker.spawn(ctx, request, alter())
