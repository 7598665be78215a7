"""Error codes in every response of every version: what is sent is what a client can decode."""

from __future__ import annotations

import random

import pytest

from odradek.broker.error_responses import error_response
from odradek.broker.faults.answers.answer_errors import copied, deepest, levels, merge, set_errors, set_throttle_time
from odradek.broker.faults.rules.rules import Level
from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.arrays.mapped import Mapped
from odradek.protocol.codec.codec import decode, encode
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.describe_log_dirs import DescribeLogDirsResponse
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from odradek.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from odradek.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from odradek.timer.sliced_work import run_through
from tests.support.wire.messages import random_struct

VERSIONS = [(spec.key, version) for spec in API.values() for version in range(spec.min_version, spec.max_version + 1)]


def no_name(topic_id: bytes) -> str | None:
    return None


@pytest.mark.parametrize(("key", "version"), VERSIONS, ids=lambda value: getattr(value, "name", str(value)))
def test_a_code_can_be_put_into_every_response(key: ApiKey, version: int) -> None:
    spec = API[key]
    response_type = spec.response_type()
    found = levels(response_type, version)
    assert found, "every response of Kafka has an error code somewhere"
    assert deepest(found) in found
    rng = random.Random(version)
    for level in found:
        changed = 0
        for _ in range(20):  # lists of random length, some of them empty
            response = random_struct(response_type, version, rng)
            changed += set_errors(response, version, ErrorCode.KAFKA_STORAGE_ERROR, level, None, no_name, None)
            assert decode(response_type, encode(response, version), version) == response
        assert changed, f"{level} of {spec.name} v{version}"


def topic(name: str, *indexes: int) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=name, partitions=[OffsetCommitResponsePartition(partition_index=index) for index in indexes]
    )


def test_only_partitions_that_are_kept_get_the_code() -> None:
    response = OffsetCommitResponse(topics=[topic("a", 0, 1), topic("b", 0)])
    changed = set_errors(
        response,
        8,
        ErrorCode.REBALANCE_IN_PROGRESS,
        Level.PARTITION,
        lambda name, index: (name, index) == ("a", 1),
        no_name,
    )
    codes = [part.error_code for each in response.topics for part in each.partitions]
    assert (changed, codes) == (1, [0, ErrorCode.REBALANCE_IN_PROGRESS, 0])


def test_a_failed_partition_has_no_records_and_without_a_leader_no_leader() -> None:
    fetched = FetchResponse(
        responses=[FetchableTopicResponse(topic="a", partitions=[PartitionData(partition_index=0, records=b"xyz")])]
    )
    set_errors(fetched, 4, ErrorCode.NOT_LEADER_OR_FOLLOWER, Level.PARTITION, None, no_name)
    assert fetched.responses[0].partitions[0].records == b""
    partition = MetadataResponsePartition(partition_index=0, leader_id=1, replica_nodes=[1], isr_nodes=[1])
    metadata = MetadataResponse(topics=[MetadataResponseTopic(name="a", partitions=[partition])])
    set_errors(metadata, 9, ErrorCode.LEADER_NOT_AVAILABLE, Level.PARTITION, None, no_name)
    assert (partition.error_code, partition.leader_id) == (ErrorCode.LEADER_NOT_AVAILABLE, -1)


def test_answers_for_parts_of_a_request_become_one_answer() -> None:
    done = OffsetCommitResponse(topics=[topic("a", 1)])
    failed = OffsetCommitResponse(topics=[topic("a", 0), topic("b", 0)])
    merge(done, failed)
    assert {(each.name, part.partition_index) for each in done.topics for part in each.partitions} == {
        ("a", 0),
        ("a", 1),
        ("b", 0),
    }
    assert [each.name for each in done.topics] == ["a", "b"]


def test_elements_that_are_made_when_they_are_read_can_be_changed_in_a_copy() -> None:
    parts = Mapped(lambda index: OffsetCommitResponsePartition(partition_index=index), range(2))
    response = OffsetCommitResponse(topics=[OffsetCommitResponseTopic(name="a", partitions=parts)])
    copy = copied(response)
    assert set_errors(copy, 8, ErrorCode.NOT_COORDINATOR, Level.PARTITION, None, no_name) == 2
    assert [part.error_code for part in copy.topics[0].partitions] == [ErrorCode.NOT_COORDINATOR] * 2
    assert [part.error_code for part in response.topics[0].partitions] == [ErrorCode.NONE] * 2


def test_the_throttle_time_is_set_where_the_version_has_it() -> None:
    assert set_throttle_time(FetchResponse(), 1, 250)
    assert not set_throttle_time(FetchResponse(), 0, 250)


def test_error_responses_of_the_broker_have_codes_at_the_same_levels() -> None:
    """`error_response` and the search by schema agree on DescribeLogDirs, which got its code at the top late."""
    assert levels(DescribeLogDirsResponse, 0) == {Level.ENTRY}
    assert levels(DescribeLogDirsResponse, 3) == {Level.TOP, Level.ENTRY}
    request = API[ApiKey.HEARTBEAT].request_type()()
    response_type = API[ApiKey.HEARTBEAT].response_type()
    work = error_response(ApiKey.HEARTBEAT, response_type, request, 4, ErrorCode.UNKNOWN_MEMBER_ID, None)
    assert run_through(work) == response_type(error_code=ErrorCode.UNKNOWN_MEMBER_ID)
