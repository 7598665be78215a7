from __future__ import annotations

import pytest

from odradek.broker.tools.dump_log.coordinator_decoders import offsets_decoder, transaction_log_decoder
from odradek.broker.tools.dump_log.record_decoders import RecordDecodingError
from odradek.coordinator.group.state.records import group_metadata_key, offset_commit_key
from odradek.protocol.codec.codec import encode
from odradek.protocol.messages.consumer_protocol import ConsumerProtocolSubscription
from odradek.protocol.messages.coordinator_records import (
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitValue,
    TransactionLogValue,
)
from odradek.protocol.records.record import Record
from odradek.protocol.topic_partition import TopicPartition


def record(key: bytes | None, value: bytes | None) -> Record:
    return Record(7, 0, key, value)


def test_committed_offset() -> None:
    key = offset_commit_key("g", TopicPartition("t", 3))
    value = b"\0\3" + encode(OffsetCommitValue(offset=5, leader_epoch=2, metadata="m", commit_timestamp=9), 3)
    assert offsets_decoder(record(key, value)) == (
        '{"type":"1","data":{"group":"g","topic":"t","partition":3}}',
        '{"version":"3","data":{"offset":5,"leaderEpoch":2,"metadata":"m","commitTimestamp":9}}',
    )
    assert offsets_decoder(record(key, None))[1] == "<DELETE>"


@pytest.mark.parametrize(
    ("protocol_type", "shown"), [("consumer", '{"topics":["t"],"userData":null}'), ("x", '"AAAAAA')]
)
def test_members_of_consumer_groups_are_opened(protocol_type: str, shown: str) -> None:
    subscription = b"\0\0" + encode(ConsumerProtocolSubscription(topics=["t"]), 0)
    value = GroupMetadataValue(
        protocol_type=protocol_type, members=[MemberMetadata(subscription=subscription, assignment=b"?")]
    )
    _, text = offsets_decoder(record(group_metadata_key("g"), b"\0\3" + encode(value, 3)))
    assert text is not None
    assert f'"subscription":{shown}' in text
    assert '"assignment":"Pw=="' in text, "what cannot be read stays as it is"


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        (b"", b"", "Error at offset 7, skipping. Could not read version from key's buffer."),
        (b"\0\x09", None, "Unknown record type 9 at offset 7, skipping."),
        (group_metadata_key("g"), b"", "Error at offset 7, skipping. Could not read version from value's buffer."),
        (group_metadata_key("g"), b"\0\3", "Error at offset 7, skipping. Could not read record with version 3"),
    ],
)
def test_a_group_record_that_cannot_be_read_is_reported(key: bytes, value: bytes | None, said: str) -> None:
    text, payload = offsets_decoder(record(key, value))
    assert text is not None
    assert text.startswith(said)
    assert payload is None


def test_transactions() -> None:
    value = TransactionLogValue(producer_id=1, transaction_status=0, transaction_partitions=None)
    key = b"\0\0\0\1t"
    assert transaction_log_decoder(record(key, b"\0\0" + encode(value, 0))) == (
        "transaction_metadata::transactionalId=t",
        "producerId:1,producerEpoch:0,state=Empty,partitions=[],txnLastUpdateTimestamp=0,txnTimeoutMs=0",
    )
    assert transaction_log_decoder(record(key, None))[1] == "<DELETE>"
    assert transaction_log_decoder(record(b"\0\5", b"")) == ("unknown::version=5", None)


@pytest.mark.parametrize(("key", "value"), [(None, b""), (b"\0", b""), (b"\0\0\0\1t", b"\0\1")])
def test_a_transaction_that_cannot_be_read_ends_the_dump(key: bytes | None, value: bytes) -> None:
    with pytest.raises(RecordDecodingError):
        transaction_log_decoder(record(key, value))


def test_a_group_record_without_a_key_ends_the_dump() -> None:
    with pytest.raises(RecordDecodingError, match="missing key"):
        offsets_decoder(record(None, b""))
