"""ListTransactions (key 66), served: 0-1. The transactional ids coordinated here (KIP-664).

Filters by state and producer id; unknown states are named in the answer. v1: by duration (KIP-994).

Kafka: KafkaApis.handleListTransactionsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import authorize
from odradek.broker.apis.services import in_slices
from odradek.controller.model.acls import AclOperation, ResourceType

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.protocol.messages.list_transactions import ListTransactionsRequest
    from odradek.timer.sliced_work import Steps


@in_slices
def handle(broker: Services, ctx: RequestContext, request: ListTransactionsRequest) -> Steps:
    response = yield from broker.transaction_coordinator.list(request)
    if broker.authorizer is not None:
        states, response.transaction_states = response.transaction_states, []
        for state in states:
            if authorize(broker, ctx, AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID, state.transactional_id):
                response.transaction_states.append(state)
            yield None
    ctx.reply(response)
