"""DescribeTransactions (key 65), served: 0. What the coordinator keeps of each transactional id (KIP-664)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
)

if TYPE_CHECKING:
    from odradek.broker.request import RequestContext
    from odradek.broker.services import Services


def handle(broker: Services, ctx: RequestContext, request: DescribeTransactionsRequest) -> None:
    describe = broker.transaction_coordinator.describe
    ctx.reply(DescribeTransactionsResponse(transaction_states=[describe(name) for name in request.transactional_ids]))
