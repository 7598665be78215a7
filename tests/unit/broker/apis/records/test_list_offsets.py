"""ListOffsets: the special timestamps and the version each came with, and the list of version 0."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from odradek.broker.apis.services import SMALL_REQUEST_BYTES
from odradek.broker.fetch.cold_reads import Lookup
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.list_offsets import ListOffsetsPartitionResponse, ListOffsetsResponse
from odradek.protocol.topic_partition import TopicPartition
from odradek.storage.disk.ports import InlineWorkerPool
from odradek.storage.log import offset_lookup
from odradek.storage.log.offset_lookup import LongLookups
from tests.support.in_process.in_process_broker import InProcessBroker
from tests.support.wire.requests import OLD, batch, build

NONE = ErrorCode.NONE
LATEST, EARLIEST, MAX_TIMESTAMP, EARLIEST_LOCAL, LATEST_TIERED = -1, -2, -3, -4, -5
CONSUMER, DEBUGGING = -1, -2


@pytest.fixture(autouse=True)
def topics(broker: InProcessBroker) -> None:
    if not broker.services.metadata_cache.contains("t"):
        broker.create_topic("t", 2)
        for values in ((b"a", b"b"), (b"c",)):
            request = build(
                ApiKey.PRODUCE,
                acks=-1,
                topic_data=[{"name": "t", "partition_data": [{"index": 0, "records": batch(*values)}]}],
            )
            broker.call(request, 11)


def list_offsets(
    broker: InProcessBroker,
    timestamp: int,
    version: int = 9,
    *,
    topic: str = "t",
    partition: int = 0,
    epoch: int = -1,
    **fields: int,
) -> ListOffsetsPartitionResponse:
    asked = {"partition_index": partition, "timestamp": timestamp, "current_leader_epoch": epoch}
    if version == 0:
        asked["max_num_offsets"] = fields.pop("max_num_offsets", 10)
    fields.setdefault("replica_id", CONSUMER)
    response = broker.call(
        build(ApiKey.LIST_OFFSETS, topics=[{"name": topic, "partitions": [asked]}], **fields), version
    )
    assert isinstance(response, ListOffsetsResponse)
    (found,) = response.topics
    assert found.name == topic
    (part,) = found.partitions
    assert part.partition_index == partition
    return part


@pytest.mark.parametrize(
    ("timestamp", "first_version", "expected"),
    [
        (LATEST, 1, (-1, 3)),
        (EARLIEST, 1, (-1, 0)),
        (MAX_TIMESTAMP, 7, (OLD + 1, 1)),
        (EARLIEST_LOCAL, 8, (-1, 0)),
        (LATEST_TIERED, 9, (-1, -1)),
    ],
)
def test_special_timestamps(
    broker: InProcessBroker, timestamp: int, first_version: int, expected: tuple[int, int]
) -> None:
    for version in range(1, 10):
        found = list_offsets(broker, timestamp, version)
        if version < first_version:
            assert (found.error_code, found.timestamp, found.offset) == (ErrorCode.UNSUPPORTED_VERSION, -1, -1)
        else:
            assert (found.error_code, (found.timestamp, found.offset)) == (NONE, expected)


@pytest.mark.parametrize("timestamp", [-6, -100, -(2**63)])
def test_negative_timestamps_that_mean_nothing(broker: InProcessBroker, timestamp: int) -> None:
    assert list_offsets(broker, timestamp).error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize(
    ("timestamp", "expected"),
    [(0, (OLD, 0)), (OLD, (OLD, 0)), (OLD + 1, (OLD + 1, 1)), (OLD + 2, (-1, -1)), (2**63 - 1, (-1, -1))],
)
def test_first_record_at_or_after_a_time(broker: InProcessBroker, timestamp: int, expected: tuple[int, int]) -> None:
    found = list_offsets(broker, timestamp)
    assert (found.error_code, (found.timestamp, found.offset)) == (NONE, expected)


@pytest.mark.parametrize(("version", "epoch"), [(3, -1), (4, 0)])
def test_leader_epoch_is_in_the_response_from_version_4_on(broker: InProcessBroker, version: int, epoch: int) -> None:
    assert list_offsets(broker, LATEST, version).leader_epoch == epoch


@pytest.mark.parametrize(
    ("asked", "error"),
    [(0, NONE), (-1, NONE), (1, ErrorCode.UNKNOWN_LEADER_EPOCH), (-2, ErrorCode.FENCED_LEADER_EPOCH)],
)
def test_leader_epoch_of_the_asker(broker: InProcessBroker, asked: int, error: ErrorCode) -> None:
    assert list_offsets(broker, LATEST, epoch=asked).error_code == error
    assert list_offsets(broker, 0, epoch=asked).error_code == error


def test_unknown_partitions(broker: InProcessBroker) -> None:
    for topic, partition in (("none", 0), ("t", 9)):
        for version in range(10):
            found = list_offsets(broker, LATEST, version, topic=topic, partition=partition)
            assert (found.error_code, found.offset) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1)


def test_partition_named_twice_is_refused_from_version_1_on(broker: InProcessBroker) -> None:
    twice = [{"partition_index": 0, "timestamp": LATEST}] * 2
    for version, expected in ((0, {NONE}), (1, {ErrorCode.INVALID_REQUEST}), (9, {ErrorCode.INVALID_REQUEST})):
        request = build(ApiKey.LIST_OFFSETS, replica_id=CONSUMER, topics=[{"name": "t", "partitions": twice}])
        (topic,) = broker.call(request, version).topics  # type: ignore[attr-defined]
        assert {part.error_code for part in topic.partitions} == expected


def test_partitions_named_twice_are_found_in_a_large_request(broker: InProcessBroker) -> None:
    names = [*map(str, range(SMALL_REQUEST_BYTES // 8)), "t", "7"]
    topics: list[dict[str, object]] = [
        {"name": name, "partitions": [{"partition_index": index, "timestamp": LATEST} for index in indexes]}
        for name in names
        for indexes in ([], [0])
    ]
    topics += [{"name": "t", "partitions": []}, {"name": "t", "partitions": [{"partition_index": 1}]}]
    found = broker.call(build(ApiKey.LIST_OFFSETS, replica_id=CONSUMER, topics=topics), 9).topics  # type: ignore[attr-defined]
    assert [(topic.name, len(topic.partitions)) for topic in found] == [
        (topic["name"], len(topic["partitions"]))  # type: ignore[arg-type]
        for topic in topics
    ]
    refused = [
        topic.name for topic in found for part in topic.partitions if part.error_code == ErrorCode.INVALID_REQUEST
    ]
    assert refused == ["7", "7"]


@pytest.mark.parametrize(
    ("version", "error"), [(4, ErrorCode.LEADER_NOT_AVAILABLE), (5, ErrorCode.OFFSET_NOT_AVAILABLE)]
)
def test_new_leader_does_not_tell_an_end_that_may_go_back(
    broker: InProcessBroker, version: int, error: ErrorCode
) -> None:
    partition = broker.services.replica_manager.partition(TopicPartition("t", 0))
    before = partition.leader_epoch_start_offset
    partition.leader_epoch_start_offset = 10
    try:
        assert list_offsets(broker, LATEST, version).error_code == error
        assert list_offsets(broker, OLD + 5, version).error_code == error
        assert list_offsets(broker, OLD, version).offset == 0
        assert list_offsets(broker, EARLIEST, version).offset == 0
        assert list_offsets(broker, LATEST, version, replica_id=DEBUGGING).offset == 3
    finally:
        partition.leader_epoch_start_offset = before


def test_follower_answers_debugging_readers_only(broker: InProcessBroker) -> None:
    partition = broker.services.replica_manager.partition(TopicPartition("t", 1))
    partition.leader_id = 7
    try:
        assert list_offsets(broker, LATEST, partition=1).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert list_offsets(broker, LATEST, partition=1, replica_id=DEBUGGING).offset == 0
    finally:
        partition.leader_id = 0


def test_only_a_lookup_that_reads_the_log_waits_for_it(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads = broker.services.replica_manager.reads.cold_reads
    asked: list[int] = []
    needed = reads.lookups_needed

    def noted(lookups: Sequence[Lookup]) -> object:
        asked.extend(timestamp for _, timestamp in lookups)
        return needed(lookups)

    monkeypatch.setattr(reads, "lookups_needed", noted)
    for timestamp in (LATEST, EARLIEST, EARLIEST_LOCAL, LATEST_TIERED):
        assert list_offsets(broker, timestamp).error_code == NONE
    assert asked == []
    log = broker.services.replica_manager.partition(TopicPartition("t", 0)).log
    assert log is not None
    for timestamp, offset in ((OLD + 1, 1), (MAX_TIMESTAMP, 1)):
        log.segments.active.warm_until_ms = 0
        assert list_offsets(broker, timestamp).offset == offset
        assert timestamp in asked
        assert log.segments.active.warm_until_ms > 0, "its indexes were read first"


@pytest.mark.parametrize("partitions", [1, 2])
def test_lookups_that_take_several_steps(
    broker: InProcessBroker, monkeypatch: pytest.MonkeyPatch, partitions: int
) -> None:
    monkeypatch.setattr(broker.services, "long_lookups", LongLookups(InlineWorkerPool()))
    monkeypatch.setattr(offset_lookup, "OPENED_RECORDS_MAX", 1)
    asked = [{"partition_index": index, "timestamp": OLD + 1} for index in range(partitions)]
    request = build(ApiKey.LIST_OFFSETS, replica_id=CONSUMER, topics=[{"name": "t", "partitions": asked}])
    (topic,) = broker.call(request, 9).topics  # type: ignore[attr-defined]
    found = [(part.error_code, part.timestamp, part.offset) for part in topic.partitions]
    assert found == [(NONE, OLD + 1, 1), (NONE, -1, -1)][:partitions]
    assert list_offsets(broker, MAX_TIMESTAMP).offset == 1


def test_unknown_isolation_level(broker: InProcessBroker) -> None:
    assert list_offsets(broker, LATEST, isolation_level=7).error_code == ErrorCode.UNKNOWN_SERVER_ERROR


# Version 0


@pytest.mark.parametrize(
    ("timestamp", "count", "expected"),
    [(LATEST, 10, [3, 0]), (LATEST, 1, [3]), (EARLIEST, 10, [0]), (LATEST, 0, []), (0, 10, [])],
)
def test_version_0_lists_where_segments_begin(
    broker: InProcessBroker, timestamp: int, count: int, expected: list[int]
) -> None:
    found = list_offsets(broker, timestamp, 0, max_num_offsets=count)
    assert (found.error_code, found.old_style_offsets) == (NONE, expected)


def test_version_0_knows_two_special_timestamps(broker: InProcessBroker) -> None:
    assert list_offsets(broker, MAX_TIMESTAMP, 0).error_code == ErrorCode.UNSUPPORTED_VERSION
