"""InitProducerId (key 22), served: 0-5.

Without a transactional id any broker returns a new producer id with epoch 0. With one, its coordinator returns the id
and a raised epoch, which fences earlier producers with that id. v2: flexible encoding. v3: the client may send the id
and epoch it has (KIP-360). v4: PRODUCER_FENCED. v5: TRANSACTION_ABORTABLE, which is never answered here.

Kafka: KafkaApis.handleInitProducerIdRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import authorize, authorize_by_resource_type, require
from odradek.broker.apis.transactions.fenced_producer import error_for_version
from odradek.controller.model.acls import CLUSTER_NAME, AclOperation, ResourceType
from odradek.coordinator.transaction.coordinator import NO_PRODUCER, ProducerIdAndEpoch
from odradek.protocol.errors import ErrorCode, KafkaError
from odradek.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from odradek.protocol.records.layout import NO_PRODUCER_EPOCH, NO_PRODUCER_ID

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext

FIRST_FENCED_VERSION = 4


def handle(broker: Services, ctx: RequestContext, request: InitProducerIdRequest) -> None:
    if request.transactional_id is not None:
        require(broker, ctx, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)
    elif not _may_be_idempotent(broker, ctx):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if (request.producer_id == NO_PRODUCER_ID) != (request.producer_epoch == NO_PRODUCER_EPOCH):
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    presented = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)

    def respond(error: ErrorCode, producer: ProducerIdAndEpoch) -> None:
        ctx.reply(
            InitProducerIdResponse(
                error_code=error_for_version(error, ctx.header.api_version, FIRST_FENCED_VERSION),
                producer_id=producer.producer_id,
                producer_epoch=producer.producer_epoch,
            )
        )

    broker.transaction_coordinator.init_producer_id(
        request.transactional_id,
        request.transaction_timeout_ms,
        None if presented == NO_PRODUCER else presented,
        respond,
    )


def _may_be_idempotent(broker: Services, ctx: RequestContext) -> bool:
    """Whoever may write some topic may do it with a producer id (KIP-679)."""
    write, cluster = AclOperation.IDEMPOTENT_WRITE, ResourceType.CLUSTER
    if authorize(broker, ctx, write, cluster, CLUSTER_NAME, log_if_denied=False):
        return True
    return authorize_by_resource_type(broker, ctx, AclOperation.WRITE, ResourceType.TOPIC)
