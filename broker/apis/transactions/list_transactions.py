"""ListTransactions (key 66), served: 0-1. The transactional ids coordinated here (KIP-664).

Filters by state and producer id; unknown states are named in the answer. v1: by duration (KIP-994).

Kafka: KafkaApis.handleListTransactionsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.request import RequestContext
    from odradek.protocol.messages.list_transactions import ListTransactionsRequest


def handle(broker: Services, ctx: RequestContext, request: ListTransactionsRequest) -> None:
    ctx.reply(broker.transaction_coordinator.list(request))
