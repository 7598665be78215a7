"""Records of `__transaction_state`: Kafka's bytes, and what is none of ours."""

from __future__ import annotations

import pytest

from odradek.coordinator.transaction.records import (
    read_transaction_key,
    read_transaction_value,
    transaction_key,
    transaction_value,
)
from odradek.coordinator.transaction.states import TransactionState
from odradek.coordinator.transaction.transaction_metadata import TransitMetadata
from odradek.coordinator.versioned_messages import CoordinatorRecordError
from odradek.protocol.topic_partition import TopicPartition


def transit(state: TransactionState, *partitions: TopicPartition) -> TransitMetadata:
    return TransitMetadata(
        producer_id=5,
        last_producer_id=4,
        producer_epoch=3,
        last_producer_epoch=2,
        timeout_ms=60_000,
        state=state,
        topic_partitions=frozenset(partitions),
        start_timestamp_ms=7,
        last_update_timestamp_ms=8,
    )


def test_the_key() -> None:
    key = transaction_key("id")
    assert key == b"\0\0" + b"\0\x02id"
    assert read_transaction_key(key) == "id"


def test_the_value_is_version_0_with_partitions_in_order() -> None:
    partitions = TopicPartition("u", 0), TopicPartition("t", 2), TopicPartition("t", 1)
    value = transaction_value(transit(TransactionState.ONGOING, *partitions))
    assert (
        value.hex()
        == (
            "0000"  # version
            "0000000000000005" + "0003" + "0000ea60" + "01"
            "00000002"  # topics
            + ("000174" + "00000002" + "00000001" + "00000002")
            + ("000175" + "00000001" + "00000000")
            + "0000000000000008"
            + "0000000000000007"
        )
    )
    read = read_transaction_value(value)
    assert read.state is TransactionState.ONGOING
    assert {tp for topic in read.partitions for tp in topic} == set(partitions)
    assert (read.producer_id, read.producer_epoch, read.timeout_ms) == (5, 3, 60_000)
    assert (read.start_timestamp_ms, read.last_update_timestamp_ms) == (7, 8)


def test_an_empty_transaction_has_null_for_its_partitions() -> None:
    value = transaction_value(transit(TransactionState.EMPTY))
    assert value[17:21] == b"\xff\xff\xff\xff"
    assert read_transaction_value(value).partitions == ()


def test_a_key_of_another_version_is_none_of_a_transaction() -> None:
    assert read_transaction_key(b"\0\x01whatever") is None


@pytest.mark.parametrize(
    "value",
    [b"", b"\0", b"\0\x07" + bytes(40), transaction_value(transit(TransactionState.ONGOING))[:-1]],
    ids=["empty", "half a version", "unknown version", "cut"],
)
def test_a_value_that_is_none(value: bytes) -> None:
    with pytest.raises(CoordinatorRecordError):
        read_transaction_value(value)


def test_an_unknown_state() -> None:
    value = bytearray(transaction_value(transit(TransactionState.EMPTY)))
    value[16] = 9
    with pytest.raises(CoordinatorRecordError, match="Unknown transaction state id 9"):
        read_transaction_value(bytes(value))
