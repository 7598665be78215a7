"""OffsetForLeaderEpoch: the end of an epoch, and refusals."""

from __future__ import annotations

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_for_leader_epoch import EpochEndOffset
from odradek.protocol.topic_partition import TopicPartition
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.wire.requests import batch, build

NONE = ErrorCode.NONE


@pytest.fixture(autouse=True)
def topics(broker: InProcessBroker) -> None:
    """Epoch 0 from 0 to 2, epoch 5 from 2 on."""
    if not broker.services.metadata_cache.contains("t"):
        broker.create_topic("t", 2)
        data = {"index": 0, "records": batch(b"a", b"b")}
        broker.call(build(ApiKey.PRODUCE, acks=-1, topic_data=[{"name": "t", "partition_data": [data]}]), 11)
        partition = broker.services.replica_manager.partition(TopicPartition("t", 0))
        assert partition.log is not None
        partition.log.assign_epoch_start_offset(5, 2)
        partition.leader_epoch = 5


def end_of(
    broker: InProcessBroker,
    epoch: int,
    version: int = 4,
    *,
    topic: str = "t",
    partition: int = 0,
    current_epoch: int = -1,
) -> EpochEndOffset:
    asked = {"partition": partition, "leader_epoch": epoch, "current_leader_epoch": current_epoch}
    request = build(ApiKey.OFFSET_FOR_LEADER_EPOCH, topics=[{"topic": topic, "partitions": [asked]}], replica_id=-2)
    (found,) = broker.call(request, version).topics  # type: ignore[attr-defined]
    (part,) = found.partitions
    assert (found.topic, part.partition) == (topic, partition)
    return part


@pytest.mark.parametrize(
    ("epoch", "expected"),
    [(0, (0, 2)), (3, (0, 2)), (5, (5, 2)), (6, (-1, -1)), (-1, (-1, -1))],
)
def test_end_of_the_largest_epoch_not_beyond(broker: InProcessBroker, epoch: int, expected: tuple[int, int]) -> None:
    found = end_of(broker, epoch)
    assert (found.error_code, (found.leader_epoch, found.end_offset)) == (NONE, expected)


@pytest.mark.parametrize("version", range(5))
def test_epoch_is_in_the_response_from_version_1_on(broker: InProcessBroker, version: int) -> None:
    found = end_of(broker, 3, version)
    assert (found.leader_epoch, found.end_offset) == (0 if version >= 1 else -1, 2)


@pytest.mark.parametrize(
    ("current", "error"),
    [
        (5, NONE),
        (-1, NONE),
        (4, ErrorCode.FENCED_LEADER_EPOCH),
        (-2, ErrorCode.FENCED_LEADER_EPOCH),
        (6, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_epoch_of_the_asker_has_to_be_ours(broker: InProcessBroker, current: int, error: ErrorCode) -> None:
    found = end_of(broker, 0, current_epoch=current)
    assert found.error_code == error
    if error != NONE:
        assert (found.leader_epoch, found.end_offset) == (-1, -1)


def test_unknown_partitions(broker: InProcessBroker) -> None:
    assert end_of(broker, 0, topic="none").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert end_of(broker, 0, partition=9).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_only_the_leader_answers(broker: InProcessBroker) -> None:
    partition = broker.services.replica_manager.partition(TopicPartition("t", 1))
    partition.leader_id = 7
    assert end_of(broker, 0, partition=1).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
