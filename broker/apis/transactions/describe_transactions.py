"""DescribeTransactions (key 65), served: 0. The coordinator's state of each transactional id (KIP-664).

Kafka: KafkaApis.handleDescribeTransactionsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.services import in_slices
from odradek.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.request import RequestContext
    from odradek.timer.sliced_work import Steps


@in_slices
def handle(broker: Services, ctx: RequestContext, request: DescribeTransactionsRequest) -> Steps:
    states = []
    for transactional_id in request.transactional_ids:
        states.append(broker.transaction_coordinator.describe(transactional_id))
        yield None
    ctx.reply(DescribeTransactionsResponse(transaction_states=states))
