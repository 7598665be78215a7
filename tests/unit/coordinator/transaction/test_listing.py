"""What administrators are shown; the transcripts in tests/golden/transactions show more."""

from __future__ import annotations

from odradek.coordinator.transaction.listing import described, list_of
from odradek.coordinator.transaction.states import TransactionState
from odradek.coordinator.transaction.transaction_metadata import TransactionMetadata
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_transactions import ListTransactionsRequest
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.sliced_work import run_through


def metadata(state: TransactionState, start_ms: int = 100) -> TransactionMetadata:
    partitions = [TopicPartition("u", 1), TopicPartition("t", 2), TopicPartition("t", 0)]
    return TransactionMetadata(
        "id",
        producer_id=5,
        producer_epoch=1,
        timeout_ms=7,
        state=state,
        topic_partitions=partitions,
        start_timestamp_ms=start_ms,
        last_update_timestamp_ms=100,
    )


def test_partitions_are_grouped_by_topic() -> None:
    found = described(metadata(TransactionState.ONGOING))
    assert [(topic.topic, topic.partitions) for topic in found.topics] == [("t", [0, 2]), ("u", [1])]
    assert (found.error_code, found.transaction_state, found.transaction_start_time_ms) == (0, "Ongoing", 100)


def test_the_dead_are_not_shown() -> None:
    dead = metadata(TransactionState.DEAD)
    assert described(dead).error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
    assert run_through(list_of([dead], ListTransactionsRequest(), 200)).transaction_states == []


def test_a_duration_is_exceeded_and_not_reached() -> None:
    def count(duration: int) -> int:
        request = ListTransactionsRequest(duration_filter=duration)
        return len(run_through(list_of([metadata(TransactionState.ONGOING)], request, 200)).transaction_states)

    assert [count(duration) for duration in (-1, 0, 99, 100, 101)] == [1, 1, 1, 0, 0]
