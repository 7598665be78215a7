"""The elements of a kept array are encoded once for each version, to the bytes that any list of them has."""

from __future__ import annotations

from collections.abc import Generator

import pytest

from odradek.protocol.codec import codec
from odradek.protocol.codec.arrays.kept_array import MAX_KEPT_VERSIONS, KeptArray
from odradek.protocol.codec.codec import (
    Part,
    TooLargeError,
    decode,
    encode,
    encode_parts_in_steps,
    size_of,
)
from odradek.protocol.codec.schema import RawTaggedField
from odradek.protocol.codec.source_writer import ELEMENTS_A_STEP
from odradek.protocol.messages.describe_groups import DescribedGroup, DescribedGroupMember, DescribeGroupsResponse
from odradek.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic

VERSIONS = range(13)


def partitions(count: int) -> list[MetadataResponsePartition]:
    return [
        MetadataResponsePartition(partition_index=index, leader_id=1, replica_nodes=[1, 2], isr_nodes=[1])
        for index in range(count)
    ]


def response(found: list[MetadataResponsePartition]) -> MetadataResponse:
    return MetadataResponse(topics=[MetadataResponseTopic(name="t", partitions=found), MetadataResponseTopic(name="u")])


def in_steps(message: MetadataResponse, version: int) -> tuple[bytes, int]:
    """The bytes, and the number of steps."""
    count: list[None] = []
    return b"".join(drained(encode_parts_in_steps(message, version), count)), len(count)  # type: ignore[arg-type]


def drained(steps: Generator[None, None, list[Part]], count: list[None] | None = None) -> list[Part]:
    """The result of all steps; an item is added to `count` for each."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            parts: list[Part] = end.value
            return parts
        if count is not None:
            count.append(None)


@pytest.mark.parametrize("count", [0, 1, ELEMENTS_A_STEP, 3 * ELEMENTS_A_STEP + 1])
def test_the_bytes_are_those_of_a_list(count: int) -> None:
    for version in VERSIONS:
        expected = encode(response(partitions(count)), version)
        kept = response(KeptArray(partitions(count)))
        assert [encode(kept, version), in_steps(kept, version)[0], encode(kept, version)] == [expected] * 3
        first_in_steps = response(KeptArray(partitions(count)))
        assert [in_steps(first_in_steps, version)[0], encode(first_in_steps, version)] == [expected] * 2
        assert decode(MetadataResponse, expected, version).topics[0].partitions == kept.topics[0].partitions


def test_the_elements_are_encoded_once_for_each_version() -> None:
    found = KeptArray(partitions(10 * ELEMENTS_A_STEP))
    first, steps = in_steps(response(found), 12)
    assert steps >= 10
    found[0].leader_id = 7  # nobody does that: it shows that the elements are not looked at
    assert in_steps(response(found), 12) == (first, 1)
    assert encode(response(found), 12) == first
    assert decode(MetadataResponse, encode(response(found), 11), 11).topics[0].partitions[0].leader_id == 7


def test_no_more_versions_are_kept_than_the_limit() -> None:
    found = KeptArray(partitions(1))
    for version in range(MAX_KEPT_VERSIONS):
        encode(response(found), version)
    assert all(found.encoded(version) for version in range(MAX_KEPT_VERSIONS))
    encode(response(found), MAX_KEPT_VERSIONS)
    assert [version for version in VERSIONS if found.encoded(version)] == [MAX_KEPT_VERSIONS]


def test_unknown_tagged_fields_of_elements_are_written() -> None:
    found = KeptArray(partitions(1))
    found[0].unknown_tagged_fields = [RawTaggedField(9, b"nine")]  # type: ignore[misc]
    for _ in range(2):
        encoded = encode(response(found), 12)
        assert in_steps(response(found), 12)[0] == encoded
        again = decode(MetadataResponse, encoded, 12).topics[0].partitions[0]
        assert again.unknown_tagged_fields == [RawTaggedField(9, b"nine")]


def test_a_large_array_that_a_response_contains_many_times_is_not_copied() -> None:
    members = KeptArray(DescribedGroupMember(member_id=f"m{index}") for index in range(1000))
    groups = [DescribedGroup(group_id=name, members=members) for name in "ab"]
    parts = drained(encode_parts_in_steps(DescribeGroupsResponse(groups=groups), 5))
    kept = members.encoded(5)
    assert [part is kept for part in parts] == [False, True, False, True, False]
    assert b"".join(map(bytes, parts)) == encode(DescribeGroupsResponse(groups=groups), 5)


def test_what_is_joined_in_memory_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    answer = DescribeGroupsResponse(groups=[DescribedGroup(group_id="n" * 1000) for _ in range(50_000)])
    size = len(encode(answer, 5))
    monkeypatch.setattr(codec, "MAX_ENCODED_BYTES", size)
    assert size_of(drained(encode_parts_in_steps(answer, 5))) == size
    monkeypatch.setattr(codec, "MAX_ENCODED_BYTES", size // 2)
    with pytest.raises(TooLargeError):
        drained(encode_parts_in_steps(answer, 5))
    members = KeptArray(DescribedGroupMember(member_id=f"m{index}") for index in range(10_000))
    shared = DescribeGroupsResponse(groups=[DescribedGroup(members=members) for _ in range(1000)])
    assert size_of(drained(encode_parts_in_steps(shared, 5))) > size


def test_a_large_array_that_is_not_kept_counts_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    def members() -> list[DescribedGroupMember]:
        return [DescribedGroupMember(member_id=f"m{index}") for index in range(1000)]

    different = DescribeGroupsResponse(groups=[DescribedGroup(members=members()) for _ in range(10)])
    kept = KeptArray(members())
    same = DescribeGroupsResponse(groups=[DescribedGroup(members=kept) for _ in range(10)])
    size = len(encode(same, 5))
    monkeypatch.setattr(codec, "MAX_ENCODED_BYTES", size // 2)
    assert size_of(drained(encode_parts_in_steps(same, 5))) == size
    with pytest.raises(TooLargeError):
        drained(encode_parts_in_steps(different, 5))
