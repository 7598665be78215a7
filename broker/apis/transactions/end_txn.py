"""EndTxn (key 26), served: 0-4.

Commits or aborts. The response is sent when the decision is in the coordinator's log, before the markers are in the
partitions. v2: PRODUCER_FENCED. v3: flexible encoding. v4: TRANSACTION_ABORTABLE, which is never answered here.

Kafka: KafkaApis.handleEndTxnRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import require
from odradek.broker.apis.transactions.fenced_producer import error_for_version
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.coordinator.transaction.coordinator import ProducerIdAndEpoch
from odradek.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.errors import ErrorCode

FIRST_FENCED_VERSION = 2


def handle(broker: Services, ctx: RequestContext, request: EndTxnRequest) -> None:
    require(broker, ctx, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id)

    def ended(error: ErrorCode) -> None:
        code = error_for_version(error, ctx.header.api_version, FIRST_FENCED_VERSION)
        ctx.reply(EndTxnResponse(error_code=code))
        ctx.flush()  # the markers are written next

    broker.transaction_coordinator.end_transaction(
        request.transactional_id,
        ProducerIdAndEpoch(request.producer_id, request.producer_epoch),
        request.committed,
        ended,
    )
