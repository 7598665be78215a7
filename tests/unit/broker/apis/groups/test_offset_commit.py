"""OffsetCommit, OffsetFetch and OffsetDelete: what is refused before the coordinator is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from odradek.broker.apis.groups.offset_commit import WITHOUT_ERRORS
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.codec import encode
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from tests.support.in_process.in_process_broker import InProcessBroker, in_process_broker
from tests.support.wire.requests import build

NONE = ErrorCode.NONE
UNKNOWN = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
Partition = tuple[str, int]


@pytest.fixture(autouse=True)
def topics(broker: InProcessBroker) -> None:
    if not broker.services.metadata_cache.contains("t"):
        broker.create_topic("t", 2)
        find_coordinator(broker)


def find_coordinator(broker: InProcessBroker) -> None:
    broker.call(build(ApiKey.FIND_COORDINATOR, coordinator_keys=["g"]), 4)
    assert broker.settle(lambda: broker.services.metadata_cache.contains("__consumer_offsets"))


def commit(broker: InProcessBroker, *partitions: Partition, version: int = 8, group: str = "g") -> dict[Partition, int]:
    topics = [
        {"name": name, "partitions": [{"partition_index": index, "committed_offset": 42, "committed_metadata": "m"}]}
        for name, index in partitions
    ]
    request = build(ApiKey.OFFSET_COMMIT, group_id=group, generation_id_or_member_epoch=-1, topics=topics)
    return {
        (topic.name, part.partition_index): part.error_code
        for topic in broker.call(request, version).topics  # type: ignore[attr-defined]
        for part in topic.partitions
    }


def committed(
    broker: InProcessBroker, *partitions: Partition, version: int = 7, group: str = "g"
) -> dict[Partition, tuple[int, int]]:
    """(error, offset) of each partition."""
    topics = [{"name": name, "partition_indexes": [index]} for name, index in partitions]
    request = build(ApiKey.OFFSET_FETCH, group_id=group, topics=topics)
    return {
        (topic.name, part.partition_index): (part.error_code, part.committed_offset)
        for topic in broker.call(request, version).topics  # type: ignore[attr-defined]
        for part in topic.partitions
    }


@pytest.mark.parametrize("version", range(10))
def test_the_answer_without_errors_is_that_of_the_response(version: int) -> None:
    topics: dict[str, list[int]] = {"t": [1, 0], "u": [7]}
    pieces: list[bytes] = []
    WITHOUT_ERRORS.encoder(version)(topics, pieces)
    answered = [
        OffsetCommitResponseTopic(
            name=name, partitions=[OffsetCommitResponsePartition(partition_index=index) for index in indexes]
        )
        for name, indexes in topics.items()
    ]
    assert b"".join(pieces) == encode(OffsetCommitResponse(topics=answered), version)


@pytest.mark.parametrize("version", range(10))
def test_each_partition_has_its_own_answer(broker: InProcessBroker, version: int) -> None:
    found = commit(broker, ("t", 0), ("none", 0), ("t", 9), version=version)
    assert found == {("t", 0): NONE, ("none", 0): UNKNOWN, ("t", 9): UNKNOWN}


def test_unknown_partitions_alone_do_not_reach_the_coordinator(tmp_path: Path) -> None:
    with in_process_broker(tmp_path) as broker:
        broker.create_topic("t")
        assert commit(broker, ("none", 0)) == {("none", 0): UNKNOWN}
        assert commit(broker, ("t", 0)) == {("t", 0): ErrorCode.NOT_COORDINATOR}
        find_coordinator(broker)
        assert commit(broker, ("t", 0)) == {("t", 0): NONE}


def test_nothing_to_commit(broker: InProcessBroker) -> None:
    assert commit(broker) == {}


@pytest.mark.parametrize("version", range(1, 8))
def test_committed_offset_is_read_back(broker: InProcessBroker, version: int) -> None:
    commit(broker, ("t", 0), group=f"g{version}")
    found = committed(broker, ("t", 0), ("t", 1), ("none", 0), version=version, group=f"g{version}")
    assert found == {("t", 0): (NONE, 42), ("t", 1): (NONE, -1), ("none", 0): (NONE, -1)}


def test_version_0_keeps_its_offsets_apart(broker: InProcessBroker) -> None:
    assert commit(broker, ("t", 0), version=0, group="old") == {("t", 0): NONE}
    assert committed(broker, ("t", 0), version=0, group="old") == {("t", 0): (NONE, 42)}
    assert committed(broker, ("t", 0), version=1, group="old") == {("t", 0): (NONE, -1)}
    assert committed(broker, ("none", 0), version=0, group="old") == {("none", 0): (UNKNOWN, -1)}


def test_offsets_of_partitions_that_do_not_exist_are_not_deleted(broker: InProcessBroker) -> None:
    commit(broker, ("t", 0), group="deleting")
    topics = [
        {"name": name, "partitions": [{"partition_index": index}]} for name, index in (("t", 0), ("t", 9), ("none", 0))
    ]
    response = broker.call(build(ApiKey.OFFSET_DELETE, group_id="deleting", topics=topics), 0)
    assert response.error_code == NONE  # type: ignore[attr-defined]
    found = {
        (topic.name, part.partition_index): part.error_code
        for topic in response.topics  # type: ignore[attr-defined]
        for part in topic.partitions
    }
    assert found == {("t", 0): NONE, ("t", 9): UNKNOWN, ("none", 0): UNKNOWN}
    assert committed(broker, ("t", 0), group="deleting") == {("t", 0): (NONE, -1)}


def test_error_of_the_group_stands_alone(broker: InProcessBroker) -> None:
    topics = [{"name": "none", "partitions": [{"partition_index": 0}]}]
    response = broker.call(build(ApiKey.OFFSET_DELETE, group_id="never", topics=topics), 0)
    assert response.error_code == ErrorCode.GROUP_ID_NOT_FOUND  # type: ignore[attr-defined]
    assert response.topics == []  # type: ignore[attr-defined]
