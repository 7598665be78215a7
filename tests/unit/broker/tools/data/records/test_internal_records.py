from __future__ import annotations

import pytest

from odradek.broker.tools.data.consume_options import parse_consume, record_format
from odradek.broker.tools.data.records.deserializers import SerializationError
from odradek.broker.tools.data.records.record_format import ConsumedRecord
from odradek.protocol.codec.codec import encode
from odradek.protocol.codec.schema import Message
from odradek.protocol.messages.coordinator_records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    TransactionLogKey,
    TransactionLogValue,
)
from odradek.protocol.records.record import Record

TOOLS = "org.apache.kafka.tools.consumer."
OFFSETS = TOOLS + "OffsetsMessageFormatter"
GROUPS = TOOLS + "GroupMetadataMessageFormatter"
TRANSACTIONS = TOOLS + "TransactionLogMessageFormatter"


def versioned(message: Message, version: int) -> bytes:
    return version.to_bytes(2, "big") + encode(message, version)


COMMIT_KEY = versioned(OffsetCommitKey(group="g", topic="t", partition=3), 1)
COMMIT = versioned(OffsetCommitValue(offset=7, leader_epoch=2, metadata='"', commit_timestamp=5), 3)
GROUP_KEY = versioned(GroupMetadataKey(group="g"), 2)
MEMBER = MemberMetadata(member_id="m", client_id="c", client_host="/h", session_timeout=9, subscription=b"\1\2")
GROUP = versioned(
    GroupMetadataValue(protocol_type="consumer", generation=1, protocol=None, leader=None, members=[MEMBER]), 3
)
TRANSACTION_KEY = versioned(TransactionLogKey(transactional_id="x"), 0)
TRANSACTION = versioned(TransactionLogValue(producer_id=1, transaction_partitions=None), 0)


def printed(formatter: str, key: bytes | None, value: bytes | None) -> str:
    found = ConsumedRecord("t", 0, Record(0, 0, key, value), 0)
    return record_format(parse_consume(["t", "--formatter", formatter]))(found).decode()


def test_keys_and_values_as_json() -> None:
    assert printed(OFFSETS, COMMIT_KEY, COMMIT) == (
        '{"key":{"version":1,"data":{"group":"g","topic":"t","partition":3}},'
        '"value":{"version":3,"data":{"offset":7,"leaderEpoch":2,"metadata":"\\"","commitTimestamp":5}}}'
    )
    assert printed(GROUPS, GROUP_KEY, GROUP) == (
        '{"key":{"version":2,"data":{"group":"g"}},"value":{"version":3,"data":{"protocolType":"consumer",'
        '"generation":1,"protocol":null,"leader":null,"currentStateTimestamp":-1,"members":[{"memberId":"m",'
        '"groupInstanceId":null,"clientId":"c","clientHost":"/h","rebalanceTimeout":-1,"sessionTimeout":9,'
        '"subscription":"AQI=","assignment":""}]}}}'
    )
    assert printed(TRANSACTIONS, TRANSACTION_KEY, TRANSACTION).startswith(
        '{"key":{"version":0,"data":{"transactionalId":"x"}},"value":{"version":0,"data":{"producerId":1,'
    )


def test_records_of_the_other_kind_are_not_printed() -> None:
    assert printed(OFFSETS, GROUP_KEY, GROUP) == ""
    assert printed(GROUPS, COMMIT_KEY, COMMIT) == ""


def test_tombstones_and_unknown_versions() -> None:
    assert printed(OFFSETS, COMMIT_KEY, None).endswith('"value":null}')
    assert printed(TRANSACTIONS, None, b"\0\2") == '{"key":null,"value":{"version":2,"data":"unknown"}}'
    assert printed(GROUPS, b"\0\3", None) == '{"key":{"version":3,"data":"unknown"},"value":null}'


@pytest.mark.parametrize("key", [b"", b"\0", COMMIT_KEY[:-1]])
def test_bytes_that_cannot_be_read(key: bytes) -> None:
    with pytest.raises(SerializationError):
        printed(OFFSETS, key, None)


@pytest.mark.parametrize(
    "name",
    [
        "kafka.coordinator.group.GroupMetadataManager$OffsetsMessageFormatter",
        "kafka.coordinator.group.GroupMetadataManager$GroupMetadataMessageFormatter",
        "kafka.coordinator.transaction.TransactionLog$TransactionLogMessageFormatter",
    ],
)
def test_names_of_older_releases(name: str) -> None:
    assert printed(name, None, None) == '{"key":null,"value":null}'
