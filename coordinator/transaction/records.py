"""The record format of `__transaction_state`: one record per transactional id; the last one is valid.

The key is the version 0 and the transactional id; keys of other versions are ignored. Values have version 0 or 1.
Version 1 is flexible and written only with `transaction.version` 1: never in ZooKeeper mode, but it is read. A null
value is a tombstone.

Kafka: TransactionLog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.coordinator.transaction.states import TransactionState
from odradek.coordinator.versioned_messages import CoordinatorRecordError, decode_versioned, read_version
from odradek.protocol.codec.codec import encode
from odradek.protocol.messages.coordinator_records import PartitionsSchema, TransactionLogKey, TransactionLogValue
from odradek.protocol.topic_partition import TopicPartition

if TYPE_CHECKING:
    from odradek.coordinator.transaction.transaction_metadata import TransitMetadata

KEY_VERSION: Final = 0
VALUE_VERSION: Final = 0


class TransactionRecord(NamedTuple):
    """The value of a record: the transaction as it was written."""

    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionState
    partitions: tuple[tuple[TopicPartition, ...], ...]
    """Grouped by topic, in the order of the record; empty in the state `Empty`."""
    last_update_timestamp_ms: int
    start_timestamp_ms: int


def transaction_key(transactional_id: str) -> bytes:
    return KEY_VERSION.to_bytes(2, "big") + encode(TransactionLogKey(transactional_id=transactional_id), KEY_VERSION)


def transaction_value(transit: TransitMetadata) -> bytes:
    """The transaction after a change. Partitions are sorted, so that equal states have equal bytes."""
    topics: dict[str, PartitionsSchema] = {}
    for topic, partition in sorted(transit.topic_partitions):
        topics.setdefault(topic, PartitionsSchema(topic=topic)).partition_ids.append(partition)
    value = TransactionLogValue(
        producer_id=transit.producer_id,
        producer_epoch=transit.producer_epoch,
        transaction_timeout_ms=transit.timeout_ms,
        transaction_status=transit.state,
        transaction_partitions=None if transit.state is TransactionState.EMPTY else list(topics.values()),
        transaction_last_update_timestamp_ms=transit.last_update_timestamp_ms,
        transaction_start_timestamp_ms=transit.start_timestamp_ms,
    )
    return VALUE_VERSION.to_bytes(2, "big") + encode(value, VALUE_VERSION)


def read_transaction_key(data: bytes) -> str | None:
    """The transactional id; None for a key of an unknown version."""
    if not TransactionLogKey.VERSIONS.covers(read_version(data)):
        return None
    return decode_versioned(TransactionLogKey, data).transactional_id


def read_transaction_value(data: bytes) -> TransactionRecord:
    """The transaction. Raises CoordinatorRecordError for invalid bytes."""
    value = decode_versioned(TransactionLogValue, data)
    try:
        state = TransactionState(value.transaction_status)
    except ValueError as error:
        raise CoordinatorRecordError(
            f"Unknown transaction state id {value.transaction_status} from the transaction status message"
        ) from error
    topics = value.transaction_partitions
    if topics is None and state is not TransactionState.EMPTY:
        raise CoordinatorRecordError(f"a transaction in state {state} has null partitions")
    return TransactionRecord(
        producer_id=value.producer_id,
        producer_epoch=value.producer_epoch,
        timeout_ms=value.transaction_timeout_ms,
        state=state,
        partitions=tuple(
            tuple(TopicPartition(topic.topic, partition) for partition in topic.partition_ids)
            for topic in (topics or () if state is not TransactionState.EMPTY else ())
        ),
        last_update_timestamp_ms=value.transaction_last_update_timestamp_ms,
        start_timestamp_ms=value.transaction_start_timestamp_ms,
    )
