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
from odradek.protocol.codec.codec import encode
from odradek.protocol.messages.coordinator_records import PartitionsSchema, TransactionLogValue
from odradek.protocol.topic_partition import TopicPartition

ONGOING = bytes.fromhex(
    "0000 00000000000003e8 0000 0000ea60 01 00000001 000174 00000001 00000000 0000018bcfe56800 0000018bcfe56800"
)


def test_key_of_the_format_description() -> None:
    assert read_transaction_key(bytes.fromhex("0000 0002 7478")) == "tx"


def test_key_of_another_version_is_none() -> None:
    assert read_transaction_key(b"\0\1\0\2tx") is None


def test_value_of_the_format_description() -> None:
    record = read_transaction_value(ONGOING)
    assert (record.producer_id, record.producer_epoch, record.timeout_ms) == (1000, 0, 60000)
    assert record.state is TransactionState.ONGOING
    assert record.partitions == ((TopicPartition("t", 0),),)
    assert record.start_timestamp_ms == record.last_update_timestamp_ms == 1700000000000


@pytest.mark.parametrize("version", [0, 1])
def test_both_versions_are_read(version: int) -> None:
    value = TransactionLogValue(
        transaction_status=4, transaction_partitions=[PartitionsSchema(topic="t", partition_ids=[2, 1])]
    )
    record = read_transaction_value(version.to_bytes(2, "big") + encode(value, version))
    assert record.state is TransactionState.COMPLETE_COMMIT
    assert record.partitions == ((TopicPartition("t", 2), TopicPartition("t", 1)),)


def test_an_empty_transaction_has_no_partitions() -> None:
    value = TransactionLogValue(transaction_status=0, transaction_partitions=None)
    assert read_transaction_value(b"\0\0" + encode(value, 0)).partitions == ()


@pytest.mark.parametrize(
    "data",
    [
        b"\0\2" + ONGOING[2:],
        ONGOING[:-1],
        b"\0\0" + encode(TransactionLogValue(transaction_status=8, transaction_partitions=[]), 0),
        b"\0\0" + encode(TransactionLogValue(transaction_status=1, transaction_partitions=None), 0),
    ],
)
def test_invalid_values_are_refused(data: bytes) -> None:
    with pytest.raises(CoordinatorRecordError):
        read_transaction_value(data)


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
