from __future__ import annotations

import pytest

from odradek.coordinator.group.offsets.offset_api import (
    fetched_offsets,
    offset_fetch_error,
    offset_fetch_response,
    offsets_to_commit,
    requested_groups,
    requested_partitions,
)
from odradek.coordinator.group.state.group_metadata import GroupMetadata
from odradek.coordinator.group.state.group_offsets import OffsetAndMetadata
from odradek.protocol.codec.codec import encode
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponseGroup,
)
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.clock import ManualClock
from odradek.timer.sliced_work import run_through

T0 = TopicPartition("t", 0)
T1 = TopicPartition("t", 1)
U0 = TopicPartition("u", 0)
NOW_MS = 1_000


def commit_request(*partitions: OffsetCommitRequestPartition, retention_ms: int = -1) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id="g",
        retention_time_ms=retention_ms,
        topics=[OffsetCommitRequestTopic(name="t", partitions=list(partitions))],
    )


def test_a_commit_is_stamped_with_the_time_of_its_arrival() -> None:
    request = commit_request(OffsetCommitRequestPartition(partition_index=0, committed_offset=5))
    assert run_through(offsets_to_commit(request, NOW_MS)) == {
        T0: OffsetAndMetadata(offset=5, metadata="", commit_timestamp_ms=NOW_MS, expire_timestamp_ms=None)
    }


def test_a_commit_may_bring_its_own_time_and_retention_and_epoch() -> None:
    request = commit_request(
        OffsetCommitRequestPartition(
            partition_index=0, committed_offset=5, commit_timestamp=7, committed_leader_epoch=3, committed_metadata="x"
        ),
        retention_ms=100,
    )
    assert run_through(offsets_to_commit(request, NOW_MS)) == {
        T0: OffsetAndMetadata(
            offset=5, leader_epoch=3, metadata="x", commit_timestamp_ms=7, expire_timestamp_ms=NOW_MS + 100
        )
    }


def test_a_partition_named_twice_counts_as_named_last() -> None:
    request = commit_request(
        OffsetCommitRequestPartition(partition_index=0, committed_offset=5),
        OffsetCommitRequestPartition(partition_index=0, committed_offset=6),
    )
    assert run_through(offsets_to_commit(request, NOW_MS))[T0].offset == 6


@pytest.mark.parametrize("topics", [None, []])
def test_requests_before_version_8_are_one_group(topics: list[OffsetFetchRequestTopic] | None) -> None:
    request = OffsetFetchRequest(group_id="g", topics=topics)
    (group,) = requested_groups(request, 7)
    assert (group.group_id, group.topics) == ("g", topics)


def test_requests_from_version_8_on_are_many() -> None:
    groups = [OffsetFetchRequestGroup(group_id="g"), OffsetFetchRequestGroup(group_id="h")]
    assert requested_groups(OffsetFetchRequest(groups=groups), 8) == groups


def test_a_partition_asked_for_twice_is_answered_once() -> None:
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[1, 0, 1])]
    assert run_through(requested_partitions(topics)) == [T1, T0]


def some_group() -> GroupMetadata:
    group = GroupMetadata("g", ManualClock())
    for position, (key, offset) in enumerate([(T0, 5), (U0, 6)]):
        value = OffsetAndMetadata(offset=offset, leader_epoch=2, metadata="m", commit_timestamp_ms=0)
        group.offsets.prepare_commit({key: value})
        group.offsets.commit_appended({key: value}, position)
    group.offsets.prepare_commit({U0: OffsetAndMetadata(offset=7, commit_timestamp_ms=0)})
    return group


@pytest.mark.parametrize("version", range(1, 10))
def test_offsets_are_fetched_in_every_version(version: int) -> None:
    topics = run_through(fetched_offsets(some_group(), [T0, T1, U0], require_stable=True))
    answer = run_through(offset_fetch_response([OffsetFetchResponseGroup(group_id="g", topics=topics)], version))
    assert encode(answer, version)
    shown = answer.topics if version < 8 else answer.groups[0].topics
    found = [
        (
            topic.name,
            one.partition_index,
            one.committed_offset,
            one.committed_leader_epoch,
            one.metadata,
            one.error_code,
        )
        for topic in shown
        for one in topic.partitions
    ]
    assert found == [
        ("t", 0, 5, 2, "m", ErrorCode.NONE),
        ("t", 1, -1, -1, "", ErrorCode.NONE),
        ("u", 0, -1, -1, "", ErrorCode.UNSTABLE_OFFSET_COMMIT),
    ]


def test_all_offsets_are_those_that_have_been_committed() -> None:
    topics = run_through(fetched_offsets(some_group(), None, require_stable=False))
    assert [(topic.name, topic.partitions[0].committed_offset) for topic in topics] == [("t", 5), ("u", 6)]


def test_of_a_group_that_does_not_exist_there_are_no_offsets() -> None:
    (topic,) = run_through(fetched_offsets(None, [T0], require_stable=True))
    assert topic.partitions[0].committed_offset == -1
    assert run_through(fetched_offsets(None, None, require_stable=True)) == []


@pytest.mark.parametrize("version", range(1, 10))
def test_an_error_is_on_the_partitions_in_version_1_and_on_the_group_later(version: int) -> None:
    group = OffsetFetchRequestGroup(group_id="g", topics=[OffsetFetchRequestTopics(name="t", partition_indexes=[0, 1])])
    failed = run_through(offset_fetch_error(group, ErrorCode.NOT_COORDINATOR, version))
    answer = run_through(offset_fetch_response([failed], version))
    assert encode(answer, version)
    if version == 1:
        assert [one.error_code for one in answer.topics[0].partitions] == [ErrorCode.NOT_COORDINATOR] * 2
    elif version < 8:
        assert (answer.error_code, answer.topics) == (ErrorCode.NOT_COORDINATOR, [])
    else:
        assert (answer.groups[0].error_code, answer.groups[0].topics) == (ErrorCode.NOT_COORDINATOR, [])
