"""DescribeTransactions (key 65), served: 0. The coordinator's state of each transactional id (KIP-664).

Kafka: KafkaApis.handleDescribeTransactionsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from odradek.broker.apis.authorization import authorize
from odradek.broker.apis.services import in_slices
from odradek.controller.model.acls import AclOperation, ResourceType
from odradek.protocol.codec.arrays.mapped import Outcomes
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from odradek.broker.apis.services import Services
    from odradek.broker.network.requests.request import RequestContext
    from odradek.timer.sliced_work import Steps


@in_slices
def handle(broker: Services, ctx: RequestContext, request: DescribeTransactionsRequest) -> Steps:
    states = Outcomes(_failed)
    for transactional_id in request.transactional_ids:
        state = yield from _describe(broker, ctx, transactional_id)
        if state.error_code == ErrorCode.NONE:
            states.append(state)
        else:
            states.add(transactional_id, state.error_code)
    ctx.reply(DescribeTransactionsResponse(transaction_states=states))


def _failed(transactional_id: str, code: int) -> TransactionState:
    return TransactionState(error_code=code, transactional_id=transactional_id)


def _describe(broker: Services, ctx: RequestContext, transactional_id: str) -> Generator[None, None, TransactionState]:
    """The state with the topics that the client may describe."""
    yield
    describe = AclOperation.DESCRIBE
    if not authorize(broker, ctx, describe, ResourceType.TRANSACTIONAL_ID, transactional_id):
        return _failed(transactional_id, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    state = broker.transaction_coordinator.describe(transactional_id)
    if broker.authorizer is not None:
        topics, state.topics = state.topics, []
        for topic in topics:
            if authorize(broker, ctx, describe, ResourceType.TOPIC, topic.topic):
                state.topics.append(topic)
            yield
    return state
