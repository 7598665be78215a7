"""Decodes the records of the coordinators' topics, `__consumer_offsets` and `__transaction_state`, for a dump.

Kafka: DumpLogSegments.OffsetsMessageParser, DumpLogSegments.TransactionLogMessageParser, CoordinatorRecordSerde,
TransactionLog.formatRecordKeyAndValue.
"""

from __future__ import annotations

from binascii import a2b_base64
from typing import TYPE_CHECKING, Final

from odradek.broker.tools.dump_log.record_decoders import RecordDecodingError
from odradek.broker.tools.hash_order import order_of_partitions
from odradek.coordinator.transaction.records import read_transaction_key, read_transaction_value
from odradek.coordinator.versioned_messages import CoordinatorRecordError, read_version
from odradek.protocol.codec.codec import DecodeError, decode
from odradek.protocol.message_json import Json, json_text, to_json
from odradek.protocol.messages import consumer_group_records as newer
from odradek.protocol.messages.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from odradek.protocol.messages.coordinator_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    OffsetCommitKey,
    OffsetCommitValue,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from odradek.broker.tools.dump_log.record_decoders import Texts
    from odradek.protocol.codec.schema import Message
    from odradek.protocol.records.record import Record

TOMBSTONE: Final = "<DELETE>"

RECORD_TYPES: Final[Mapping[int, tuple[type[Message], type[Message]]]] = {
    0: (OffsetCommitKey, OffsetCommitValue),
    1: (OffsetCommitKey, OffsetCommitValue),
    2: (GroupMetadataKey, GroupMetadataValue),
    3: (newer.ConsumerGroupMetadataKey, newer.ConsumerGroupMetadataValue),
    4: (newer.ConsumerGroupPartitionMetadataKey, newer.ConsumerGroupPartitionMetadataValue),
    5: (newer.ConsumerGroupMemberMetadataKey, newer.ConsumerGroupMemberMetadataValue),
    6: (newer.ConsumerGroupTargetAssignmentMetadataKey, newer.ConsumerGroupTargetAssignmentMetadataValue),
    7: (newer.ConsumerGroupTargetAssignmentMemberKey, newer.ConsumerGroupTargetAssignmentMemberValue),
    8: (newer.ConsumerGroupCurrentMemberAssignmentKey, newer.ConsumerGroupCurrentMemberAssignmentValue),
}
"""Version of the key -> the types of key and value in `__consumer_offsets`."""


def transaction_log_decoder(record: Record) -> Texts:
    """A record of `__transaction_state`."""
    if record.key is None:
        raise RecordDecodingError(f"The record at offset {record.offset} has no key")
    try:
        transactional_id = read_transaction_key(record.key)
        if transactional_id is None:
            return f"unknown::version={read_version(record.key)}", None
        key = f"transaction_metadata::transactionalId={transactional_id}"
        if record.value is None:
            return key, TOMBSTONE
        txn = read_transaction_value(record.value)
    except CoordinatorRecordError as error:
        raise RecordDecodingError(f"The record at offset {record.offset}: {error}") from error
    return key, (
        f"producerId:{txn.producer_id},producerEpoch:{txn.producer_epoch},state={txn.state},"
        f"partitions=[{','.join(map(str, order_of_partitions(txn.partitions)))}],"
        f"txnLastUpdateTimestamp={txn.last_update_timestamp_ms},txnTimeoutMs={txn.timeout_ms}"
    )


def offsets_decoder(record: Record) -> Texts:
    """A record of `__consumer_offsets`. If it cannot be read, the error stands in place of its key."""
    if record.key is None:
        raise RecordDecodingError(
            f"Failed to decode message at offset {record.offset} using offset topic decoder (message had a missing key)"
        )
    try:
        record_type = _version(record.key, "key")
        types = RECORD_TYPES.get(record_type)
        if types is None:
            return f"Unknown record type {record_type} at offset {record.offset}, skipping.", None
        key = to_json(_read(types[0], record.key, record_type, "key"), record_type)
        key_text = json_text({"type": str(record_type), "data": key})
        if record.value is None:
            return key_text, TOMBSTONE
        version = _version(record.value, "value")
        value = to_json(_read(types[1], record.value, version, "value"), version)
    except RecordDecodingError as error:
        return f"Error at offset {record.offset}, skipping. {error}", None
    if types[1] is GroupMetadataValue and value["protocolType"] == "consumer":
        _decode_members(value["members"])
    return key_text, json_text({"version": str(version), "data": value})


def _version(data: bytes, part: str) -> int:
    try:
        return read_version(data)
    except CoordinatorRecordError as error:
        raise RecordDecodingError(f"Could not read version from {part}'s buffer.") from error


def _read(kind: type[Message], data: bytes, version: int, part: str) -> Message:
    """As Kafka: a version that is too new is read as the newest known."""
    known = min(max(version, kind.VERSIONS.first), kind.VERSIONS.last)
    try:
        return decode(kind, memoryview(data)[2:], known)
    except DecodeError as error:
        raise RecordDecodingError(
            f"Could not read record with version {version} from {part}'s buffer due to: {error}."
        ) from error


def _decode_members(members: Json) -> None:
    """Replace the bytes of subscriptions and assignments by their fields, if they can be decoded."""
    assert isinstance(members, list)
    for member in members:
        assert isinstance(member, dict)
        _decode_in_place(member, "subscription", ConsumerProtocolSubscription)
        _decode_in_place(member, "assignment", ConsumerProtocolAssignment)


def _decode_in_place(member: dict[str, Json], name: str, kind: type[Message]) -> None:
    encoded = member[name]
    assert isinstance(encoded, str)
    data = a2b_base64(encoded)
    try:
        version = _version(data, name)
        member[name] = to_json(_read(kind, data, version, name), version)
    except RecordDecodingError:
        return
