"""DeleteRecords: low watermarks, refusals."""

from __future__ import annotations

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.wire.requests import batch, build

NONE = ErrorCode.NONE
HIGH_WATERMARK = -1


@pytest.fixture(autouse=True)
def topics(broker: InProcessBroker) -> None:
    if not broker.services.metadata_cache.contains("t"):
        broker.create_topic("t", 8)
        broker.create_topic("compacted", configs={"cleanup.policy": "compact"})
        for partition in range(8):
            data = {"index": partition, "records": batch(b"a", b"b", b"c")}
            broker.call(build(ApiKey.PRODUCE, acks=-1, topic_data=[{"name": "t", "partition_data": [data]}]), 11)


def delete(
    broker: InProcessBroker, *partitions: tuple[str, int, int], version: int = 2
) -> dict[tuple[str, int], tuple[int, int]]:
    """(error, low watermark) of each partition."""
    topics = [
        {"name": name, "partitions": [{"partition_index": index, "offset": offset}]}
        for name, index, offset in partitions
    ]
    request = build(ApiKey.DELETE_RECORDS, topics=topics, timeout_ms=1_000)
    return {
        (topic.name, part.partition_index): (part.error_code, part.low_watermark)
        for topic in broker.call(request, version).topics  # type: ignore[attr-defined]
        for part in topic.partitions
    }


@pytest.mark.parametrize("version", range(3))
def test_log_begins_where_asked(broker: InProcessBroker, version: int) -> None:
    assert delete(broker, ("t", version, 2), version=version) == {("t", version): (NONE, 2)}
    assert delete(broker, ("t", version, 1), version=version) == {("t", version): (NONE, 2)}, "it does not go back"


def test_high_watermark_means_everything(broker: InProcessBroker) -> None:
    assert delete(broker, ("t", 3, HIGH_WATERMARK)) == {("t", 3): (NONE, 3)}


@pytest.mark.parametrize("offset", [4, -2, 2**62])
def test_offset_beyond_the_log(broker: InProcessBroker, offset: int) -> None:
    assert delete(broker, ("t", 4, offset)) == {("t", 4): (ErrorCode.OFFSET_OUT_OF_RANGE, -1)}


def test_each_partition_has_its_own_answer(broker: InProcessBroker) -> None:
    asked = (("t", 5, 1), ("none", 0, 0), ("t", 99, 0), ("compacted", 0, 0))
    assert delete(broker, *asked) == {
        ("t", 5): (NONE, 1),
        ("none", 0): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        ("t", 99): (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1),
        ("compacted", 0): (ErrorCode.POLICY_VIOLATION, -1),
    }


def test_internal_topics_keep_their_records(broker: InProcessBroker) -> None:
    broker.create_topic("__consumer_offsets", configs={"cleanup.policy": "delete"})
    found = delete(broker, ("__consumer_offsets", 0, 0))
    assert found == {("__consumer_offsets", 0): (ErrorCode.INVALID_TOPIC_EXCEPTION, -1)}


def test_partition_named_twice_counts_as_last_named(broker: InProcessBroker) -> None:
    assert delete(broker, ("t", 6, 3), ("t", 6, 1)) == {("t", 6): (NONE, 1)}


def test_nothing_asked(broker: InProcessBroker) -> None:
    assert delete(broker) == {}
