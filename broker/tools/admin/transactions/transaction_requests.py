"""Requests for transactions: all of them by broker, or the state of some.

Kafka: KafkaAdminClient.listTransactions, KafkaAdminClient.describeTransactions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from odradek.broker.tools.admin.client.coordinators import KeyType, ask_all_brokers, ask_coordinators
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TransactionState,
)
from odradek.protocol.messages.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from odradek.protocol.messages.list_transactions import TransactionState as ListedTransaction

if TYPE_CHECKING:
    from odradek.broker.tools.admin.client.admin_client import AdminClient


class DescribedTransaction(NamedTuple):
    """A transactional id, and the broker that coordinates it."""

    error_code: int
    state: TransactionState
    broker_id: int


async def list_transactions(
    client: AdminClient, *, producer_ids: Iterable[int] = (), longer_than_ms: int | None = None
) -> list[tuple[int, ListedTransaction]]:
    """Transactions with their brokers, by broker and id. Raises: CommandFailed."""
    request = ListTransactionsRequest(producer_id_filters=list(producer_ids))
    if longer_than_ms is not None:
        request.duration_filter = longer_than_ms

    async def ask(broker_id: int) -> ListTransactionsResponse:
        return await client.ask_broker(broker_id, request, ListTransactionsResponse)

    loading = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,)
    answers = await ask_all_brokers(client, ask, tried_again=loading, what="Failed to list transactions of broker")
    return [
        (broker_id, state)
        for broker_id, response in answers.items()
        for state in sorted(response.transaction_states, key=lambda state: state.transactional_id)
    ]


async def describe_transactions(client: AdminClient, ids: Iterable[str]) -> dict[str, DescribedTransaction]:
    """The state of each transactional id, or an error. Raises: CommandFailed."""

    async def ask(broker_id: int, keys: Sequence[str]) -> Mapping[str, DescribedTransaction]:
        request = DescribeTransactionsRequest(transactional_ids=list(keys))
        response = await client.ask_broker(broker_id, request, DescribeTransactionsResponse)
        return {
            state.transactional_id: DescribedTransaction(state.error_code, state, broker_id)
            for state in response.transaction_states
        }

    return await ask_coordinators(client, KeyType.TRANSACTION, ids, ask)
