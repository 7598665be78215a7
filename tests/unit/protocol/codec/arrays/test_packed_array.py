"""Long arrays of large requests stay as bytes, and read like the lists that they would have been."""

from __future__ import annotations

from array import array

import pytest

from odradek.protocol.api import API
from odradek.protocol.codec.arrays.packed_array import LARGE_BYTES, STEP, PackedArray, packed_numbers
from odradek.protocol.codec.codec import decode, decode_in_steps, elements_in_steps, encode
from odradek.protocol.codec.decode_error import DecodeError
from odradek.protocol.codec.schema import Field, Struct
from odradek.protocol.codec.source_writer import ELEMENTS_A_STEP, FORMATS, PACKED_ABOVE
from odradek.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from odradek.protocol.messages.update_features import FeatureUpdateKey, UpdateFeaturesRequest
from tests.unit.protocol.codec.test_codec import finish

NUMBERS = ("b", "h", "H", "i", "I", "q", "d")


def features(count: int) -> list[FeatureUpdateKey]:
    return [FeatureUpdateKey(feature=f"feature-{number}", max_version_level=number % 7) for number in range(count)]


@pytest.mark.parametrize("count", [PACKED_ABOVE, PACKED_ABOVE + 1, PACKED_ABOVE + STEP])
def test_it_reads_as_a_list(count: int) -> None:
    expected = features(count)
    encoded = encode(UpdateFeaturesRequest(feature_updates=expected), 0)
    found, steps = finish(decode_in_steps(UpdateFeaturesRequest, encoded, 0))
    updates = found.feature_updates
    assert isinstance(updates, PackedArray if count > PACKED_ABOVE else list)
    assert steps >= count // ELEMENTS_A_STEP
    assert len(updates) == count
    assert list(updates) == list(updates) == expected
    for index in (0, 1, STEP - 1, STEP, count // 2, count - 1, -1, -count):
        assert updates[index] == expected[index]
    for some in (slice(3), slice(count - 2, None), slice(None, None, -100), slice(5, 5)):
        assert updates[some] == expected[some]
    for index in (count, -count - 1):
        with pytest.raises(IndexError):
            updates[index]
    assert encode(found, 0) == encoded


def test_what_is_wrong_in_an_element_is_found_when_the_request_is_decoded() -> None:
    request = UpdateFeaturesRequest(feature_updates=features(PACKED_ABOVE + 100))
    encoded = bytearray(encode(request, 0))
    damaged = encoded.index(b"feature-1100")
    encoded[damaged : damaged + 2] = b"\xff\xfe"
    with pytest.raises(DecodeError, match="utf-8"):
        finish(decode_in_steps(UpdateFeaturesRequest, bytes(encoded), 0))
    with pytest.raises(DecodeError):
        finish(decode_in_steps(UpdateFeaturesRequest, bytes(encoded[: damaged - 40]), 0))


def test_elements_with_arrays_are_made_anew_unless_they_are_large() -> None:
    """A large one would take too long to be decoded in one step."""
    long = LARGE_BYTES // 4
    topics = [
        OffsetDeleteRequestTopic(
            name=f"topic-{number}",
            partitions=[
                OffsetDeleteRequestPartition(partition_index=index)
                for index in range(long if number in (0, 700, PACKED_ABOVE + 9) else 2)
            ],
        )
        for number in range(PACKED_ABOVE + 10)
    ]
    found = finish(decode_in_steps(OffsetDeleteRequest, encode(OffsetDeleteRequest(topics=topics), 0), 0))[0]
    packed = found.topics
    assert isinstance(packed, PackedArray)
    assert list(packed) == topics
    assert packed[700] == topics[700]
    assert packed[701] == topics[701]
    assert packed[-1] is packed[-1]
    assert packed[1] is not packed[1]
    assert sorted(packed.large) == [0, 700, PACKED_ABOVE + 9]
    freed, _ = finish(elements_in_steps(found))
    assert sorted(map(len, freed)) == [long] * 3, "they are let go in steps, as other long arrays"


def test_records_stay_views_into_the_frame() -> None:
    partitions = [PartitionProduceData(index=index, records=b"records") for index in range(PACKED_ABOVE + 1)]
    encoded = encode(ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=partitions)]), 9)
    frame = memoryview(bytearray(encoded))
    found = finish(decode_in_steps(ProduceRequest, frame, 9))[0]
    (topic,) = found.topic_data
    assert isinstance(topic.partition_data, PackedArray)
    records = [partition.records for partition in topic.partition_data]
    assert all(isinstance(each, memoryview) and each.obj is frame.obj for each in records)
    assert list(topic.partition_data) == list(decode(ProduceRequest, frame, 9).topic_data[0].partition_data)


@pytest.mark.parametrize("count", [PACKED_ABOVE, PACKED_ABOVE + 1])
def test_numbers_need_no_more_memory_than_their_bytes(count: int) -> None:
    indexes = [number * 1_000 - 500 for number in range(count)]
    request = DescribeProducersRequest(topics=[TopicRequest(name="t", partition_indexes=indexes)])
    encoded = encode(request, 0)
    found = finish(decode_in_steps(DescribeProducersRequest, encoded, 0))[0]
    (topic,) = found.topics
    assert isinstance(topic.partition_indexes, array if count > PACKED_ABOVE else list)
    assert list(topic.partition_indexes) == indexes
    assert encode(found, 0) == encoded


def test_what_may_be_packed() -> None:
    """Texts and truth values have no decoder of their own."""
    packed = [field for spec in API.values() for field in _fields(spec.request_type()) if field.packed]
    assert len(packed) > 40
    for field in packed:
        assert isinstance(field.element, type) or FORMATS[field.element.kind] in NUMBERS, field


def _fields(struct: type[Struct]) -> list[Field]:
    inner = [_fields(field.element) for field in struct.FIELDS if isinstance(field.element, type)]
    return [*struct.FIELDS, *(field for fields in inner for field in fields)]


@pytest.mark.parametrize("code", NUMBERS)
def test_numbers_of_each_kind(code: str) -> None:
    numbers = [0, 1, 100]
    big_endian = b"".join(number.to_bytes(array(code).itemsize) for number in numbers)
    if code == "d":
        big_endian = bytes.fromhex("0000000000000000 3ff0000000000000 4059000000000000")
    assert list(packed_numbers(code, big_endian)) == list(packed_numbers(code, memoryview(big_endian))) == numbers
