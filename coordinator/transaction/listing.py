"""The transactions in DescribeTransactions and ListTransactions responses (KIP-664, KIP-994).

Kafka: TransactionCoordinator.handleDescribeTransactions, TransactionStateManager.listTransactionStates.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable

from odradek.coordinator.transaction.states import STATES_BY_NAME, TransactionState
from odradek.coordinator.transaction.transaction_metadata import TransactionMetadata
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages import describe_transactions, list_transactions
from odradek.timer.repeated_items import each_once
from odradek.timer.sliced_work import chosen, distinct, listed


def described(metadata: TransactionMetadata) -> describe_transactions.TransactionState:
    """One transaction. A transactional id in state Dead is not found, although it is still in memory."""
    if metadata.state is TransactionState.DEAD:
        return describe_transactions.TransactionState(
            error_code=ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id=metadata.transactional_id
        )
    topics: dict[str, describe_transactions.TopicData] = {}
    for name, partition in sorted(metadata.topic_partitions):
        topics.setdefault(name, describe_transactions.TopicData(topic=name)).partitions.append(partition)
    return describe_transactions.TransactionState(
        transactional_id=metadata.transactional_id,
        transaction_state=str(metadata.state),
        transaction_timeout_ms=metadata.timeout_ms,
        transaction_start_time_ms=metadata.start_timestamp_ms,
        producer_id=metadata.producer_id,
        producer_epoch=metadata.producer_epoch,
        topics=list(topics.values()),
    )


def list_of(
    transactions: Iterable[TransactionMetadata], request: list_transactions.ListTransactionsRequest, now_ms: int
) -> Generator[None, None, list_transactions.ListTransactionsResponse]:
    """The transactions that pass all filters, in steps. An empty filter passes all; `duration_filter` is a minimum age
    in ms.
    """
    names = yield from each_once(request.state_filters)
    wanted_states = [STATES_BY_NAME[name] for name in (yield from chosen(names, STATES_BY_NAME.__contains__))]
    unknown = yield from chosen(names, lambda name: name not in STATES_BY_NAME)
    producer_ids = yield from distinct(request.producer_id_filters)

    def passes(metadata: TransactionMetadata) -> bool:
        age_ms = now_ms - metadata.start_timestamp_ms
        return (
            metadata.state is not TransactionState.DEAD
            and (not producer_ids or metadata.producer_id in producer_ids)
            and (not request.state_filters or metadata.state in wanted_states)
            and (request.duration_filter < 0 or age_ms > request.duration_filter)
        )

    found = yield from chosen(tuple(transactions), passes)
    states = yield from listed(
        list_transactions.TransactionState(
            transactional_id=metadata.transactional_id,
            producer_id=metadata.producer_id,
            transaction_state=str(metadata.state),
        )
        for metadata in found
    )
    return list_transactions.ListTransactionsResponse(unknown_state_filters=unknown, transaction_states=states)
