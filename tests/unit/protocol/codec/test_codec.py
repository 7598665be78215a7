"""Round trips of every version of every message, and what `encode` and `decode` promise for all of them."""

from __future__ import annotations

import random
from collections.abc import Generator
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.protocol.codec.codec import (
    PIECES_JOINED_AT_ONCE,
    DecodeBudget,
    DecodeError,
    Decoder,
    EncodeError,
    decode,
    decode_from,
    decode_in_steps,
    encode,
    encode_parts,
    encode_parts_in_steps,
    generated_source,
    size_of,
)
from odradek.protocol.codec.schema import Message
from odradek.protocol.codec.source_writer import ELEMENTS_A_STEP
from odradek.protocol.messages.coordinator_records import OffsetCommitKey, OffsetCommitValue
from odradek.protocol.messages.describe_configs import DescribeConfigsResponse, DescribeConfigsResult
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.wire.messages import every_message, every_version, random_struct

T = TypeVar("T")
MESSAGES = every_message()
VERSIONS = list(every_version())


def versions_of(message: type[Message]) -> range:
    return range(message.VERSIONS.first, message.VERSIONS.last + 1)


class Region:
    """Stands for a piece of a file."""

    size_in_bytes = 1000


def produce_request(records: bytes) -> ProduceRequest:
    partition = PartitionProduceData(index=3, records=records)
    return ProduceRequest(
        acks=-1, timeout_ms=30_000, topic_data=[TopicProduceData(name="t", partition_data=[partition])]
    )


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.__name__)
def test_every_version_round_trips(message: type[Message]) -> None:
    rng = random.Random(message.__name__)
    for version in versions_of(message):
        for value in (message(), *(random_struct(message, version, rng) for _ in range(5))):
            encoded = encode(value, version)
            assert decode_from(message, memoryview(encoded), version) == (value, len(encoded))


@settings(deadline=None)
@given(st.sampled_from(VERSIONS), st.integers(0, 1 << 64), st.binary(max_size=5), st.binary(max_size=5))
def test_a_message_is_found_inside_a_buffer(
    message_version: tuple[type[Message], int], seed: int, before: bytes, after: bytes
) -> None:
    message, version = message_version
    value = random_struct(message, version, random.Random(seed))
    encoded = encode(value, version)
    buffer = before + encoded + after
    for data in (buffer, memoryview(buffer)):
        assert decode_from(message, data, version, position=len(before)) == (value, len(before) + len(encoded))


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.__name__)
def test_parts_joined_are_the_encoded_message(message: type[Message]) -> None:
    rng = random.Random(message.__name__)
    for version in versions_of(message):
        value = random_struct(message, version, rng)
        parts = encode_parts(value, version, b"prefix")
        assert b"".join(parts) == b"prefix" + encode(value, version)  # type: ignore[arg-type]
        assert size_of(parts) == 6 + len(encode(value, version))


def finish(steps: Generator[None, None, T]) -> tuple[T, int]:
    """What a generator returns, and how often it could have been left."""
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, count
        count += 1


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: message.__name__)
def test_in_steps_it_is_the_same(message: type[Message]) -> None:
    rng = random.Random(message.__name__)
    version = rng.choice(versions_of(message))
    for value in (message(), *(random_struct(message, version, rng) for _ in range(5))):
        encoded = encode(value, version)
        parts, _ = finish(encode_parts_in_steps(value, version, b"prefix"))
        assert parts == encode_parts(value, version, b"prefix")
        assert finish(decode_in_steps(message, memoryview(b"xx" + encoded), version, 2))[0] == value


@pytest.mark.parametrize("has_records", [False, True])
def test_pieces_are_joined_in_parts_of_limited_size(has_records: bool) -> None:
    topics = [
        TopicProduceData(
            name=f"topic-{number}",
            partition_data=[PartitionProduceData(records=b"records" if has_records else b"") for _ in range(100)],
        )
        for number in range(PIECES_JOINED_AT_ONCE // 50)
    ]
    request = ProduceRequest(topic_data=topics)
    at_once = encode_parts(request, 9, b"prefix")
    parts, _ = finish(encode_parts_in_steps(request, 9, b"prefix"))
    assert b"".join(map(bytes, parts)) == b"".join(map(bytes, at_once))
    if has_records:
        assert parts.count(b"records") == at_once.count(b"records") == 100 * len(topics)
    else:
        assert len(parts) > 1
        assert max(map(len, parts)) < len(at_once[0]) / 2


def test_equal_parts_are_one_object() -> None:
    """A request of 1 MB that names one partition 260,000 times has an answer of 16 MB."""
    element = MetadataRequestTopic(name="same")
    request = MetadataRequest(topics=[element] * (10 * PIECES_JOINED_AT_ONCE))
    parts, _ = finish(encode_parts_in_steps(request, 1, b"prefix"))
    assert b"".join(map(bytes, parts)) == b"prefix" + encode(request, 1)
    assert len(parts) > 10
    assert len({id(part) for part in parts}) <= 3  # the first has the prefix, the last is shorter


def test_some_elements_of_an_array_are_a_step() -> None:
    count = 100 * ELEMENTS_A_STEP
    request = MetadataRequest(topics=[MetadataRequestTopic(name=str(number)) for number in range(count)])
    for version in (1, 9):
        _, steps = finish(encode_parts_in_steps(request, version))
        assert steps >= 100
        _, steps = finish(decode_in_steps(MetadataRequest, encode(request, version), version))
        assert steps >= 100
    deletion = OffsetDeleteRequest(
        topics=[OffsetDeleteRequestTopic(partitions=[OffsetDeleteRequestPartition() for _ in range(count)])]
    )
    assert finish(decode_in_steps(OffsetDeleteRequest, encode(deletion, 0), 0))[1] >= 100, "of fixed width, too"


def test_in_steps_empty_arrays_need_no_memory() -> None:
    """A list of its own for each would have 56 bytes: more than all else of the element."""
    topics = [OffsetDeleteRequestTopic(name="", partitions=[]) for _ in range(1_000)]
    encoded = encode(OffsetDeleteRequest(topics=topics), 0)
    found = finish(decode_in_steps(OffsetDeleteRequest, encoded, 0))[0]
    assert found == decode(OffsetDeleteRequest, encoded, 0)
    assert len({id(topic.partitions) for topic in found.topics}) == 1


@settings(deadline=None)
@given(st.sampled_from(VERSIONS), st.integers(0, 1 << 64), st.data())
def test_in_steps_the_same_bytes_are_refused(
    message_and_version: tuple[type[Message], int], seed: int, data: st.DataObject
) -> None:
    message, version = message_and_version
    encoded = encode(random_struct(message, version, random.Random(seed)), version)
    cut = data.draw(st.integers(0, len(encoded)))
    damaged = encoded[:cut] + data.draw(st.binary(max_size=4))
    try:
        expected: Message | str = decode(message, damaged, version)
    except DecodeError as error:
        expected = str(error)
    try:
        found: Message | str = finish(decode_in_steps(message, damaged, version))[0]
    except DecodeError as error:
        found = str(error)
    assert found == expected


def test_in_steps_the_same_values_are_refused() -> None:
    with pytest.raises(EncodeError):
        finish(encode_parts_in_steps(MetadataRequest(topics=[MetadataRequestTopic(name=None)]), 1))
    for refused in (decode_in_steps(MetadataRequest, b"", 99), encode_parts_in_steps(MetadataRequest(), 99)):
        with pytest.raises((DecodeError, EncodeError), match="has no version 99"):
            finish(refused)


def test_bytes_after_the_message_are_ignored() -> None:
    """As Apache Kafka does: `AbstractRequest.parseRequest` does not look at what remains."""
    assert decode(MetadataRequest, b"\0\0\0\0" + b"more", 0) == MetadataRequest()


def test_records_are_views_into_the_buffer() -> None:
    buffer = memoryview(encode(produce_request(b"r" * 300), 9))
    records = decode(ProduceRequest, buffer, 9).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)
    assert records.obj is buffer.obj
    assert records == b"r" * 300


def test_records_of_plain_bytes_are_views_too() -> None:
    records = decode(ProduceRequest, encode(produce_request(b"abc"), 3), 3).topic_data[0].partition_data[0].records
    assert isinstance(records, memoryview)


def test_other_bytes_are_copies() -> None:
    value = OffsetCommitKey(group="g", topic="t", partition=1)
    encoded = bytearray(encode(value, 1))
    decoded = decode(OffsetCommitKey, memoryview(encoded), 1)
    encoded[:] = bytes(len(encoded))
    assert decoded == value


def test_regions_of_files_stay_parts_in_order() -> None:
    region = Region()
    partitions = [
        PartitionData(partition_index=0, records=region),
        PartitionData(partition_index=1, records=None),
        PartitionData(partition_index=2, records=b""),
        PartitionData(partition_index=3, records=b"abc"),
    ]
    response = FetchResponse(responses=[FetchableTopicResponse(topic_id=bytes(16), partitions=partitions)])
    parts = encode_parts(response, 17)
    assert [type(part) for part in parts] == [bytes, Region, bytes, bytes, bytes]
    assert parts[1] is region
    assert parts[3] == b"abc"
    assert isinstance(parts[0], bytes)
    assert parts[0].endswith(bytes.fromhex("e907"))  # 1001, one more than the size, as a varint
    same = FetchResponse(responses=[FetchableTopicResponse(topic_id=bytes(16), partitions=partitions)])
    same.responses[0].partitions[0].records = bytes(1000)
    assert size_of(parts) == len(encode(same, 17))


def test_a_region_cannot_be_encoded_into_bytes() -> None:
    request = produce_request(b"")
    request.topic_data[0].partition_data[0].records = Region()
    with pytest.raises(EncodeError, match="not bytes"):
        encode(request, 9)


@pytest.mark.parametrize("version", [-1, 12, 99])
def test_versions_that_do_not_exist_are_refused(version: int) -> None:
    with pytest.raises(DecodeError, match=f"ProduceRequest has no version {version}"):
        decode(ProduceRequest, bytes(100), version)
    with pytest.raises(EncodeError, match=f"ProduceRequest has no version {version}"):
        encode(ProduceRequest(), version)


def test_the_budget_counts_the_values_in_arrays() -> None:
    """A topic costs one for itself and one for each of its two fields."""
    encoded = encode(MetadataRequest(topics=[MetadataRequestTopic(name="a")] * 5), 4)
    assert decode(MetadataRequest, encoded, 4, DecodeBudget(values=15)).topics
    with pytest.raises(DecodeError, match="number of values"):
        decode(MetadataRequest, encoded, 4, DecodeBudget(values=14))


def test_a_message_has_a_budget_of_its_own() -> None:
    limit = MetadataRequest.MAX_VALUES // 3
    topic = b"\0\0"

    def request(count: int) -> bytes:
        return count.to_bytes(4, "big") + topic * count + b"\0"

    assert len(decode(MetadataRequest, request(limit), 4).topics or ()) == limit
    with pytest.raises(DecodeError, match="number of values"):
        decode(MetadataRequest, request(limit + 1), 4)


def test_equal_bytes_for_equal_stored_values() -> None:
    """The example of the storage format: offset 42, epoch 7, no metadata, 1700000000000 ms."""
    value = OffsetCommitValue(offset=42, leader_epoch=7, metadata="", commit_timestamp=1_700_000_000_000)
    assert encode(value, 3).hex() == "000000000000002a0000000700000000018bcfe56800"


def test_generated_source_can_be_read() -> None:
    source = generated_source(ProduceRequest, 9)
    assert "def decode(data, pos, values, max_tags):" in source
    assert "def encode(o, out, marks):" in source
    compile(source, "<both>", "exec")


@pytest.mark.parametrize("size", [1, 126, 127, 128, 16_382, 16_383, 2**21 - 2, 2**21 - 1])
def test_records_have_lengths_of_one_to_four_bytes(size: int) -> None:
    part = PartitionProduceData(index=1, records=bytes(size))
    request = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[part])])
    decoded, end = decode_from(ProduceRequest, encoded := encode(request, 9), 9)
    assert decoded.topic_data[0].partition_data[0].records == bytes(size)
    assert end == len(encoded)


def test_a_decoder_of_one_type_is_decode_with_fewer_values_if_asked() -> None:
    decoder = Decoder(ProduceRequest)
    parts = [PartitionProduceData(index=index, records=b"r") for index in range(9)]
    request = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=parts)])
    encoded = b"header" + encode(request, 11)
    assert decoder.decode(encoded, 11, 6) == decode(ProduceRequest, encoded, 11, position=6)
    assert decoder.decode(encoded, 11, 6, 30) == decode(ProduceRequest, encoded, 11, position=6)
    with pytest.raises(DecodeError, match="partition_data"):
        decoder.decode(encoded, 11, 6, 29)
    with pytest.raises(DecodeError, match="ProduceRequest version 11"):
        decoder.decode(encoded[:-9], 11, 6)
    with pytest.raises(DecodeError, match="no version 99"):
        decoder.decode(encoded, 99, 6)


def test_equal_parts_in_a_row_are_one_object() -> None:
    same = DescribeConfigsResult(error_code=1, error_message="no", resource_name="r")
    results = [same] * (10 * PIECES_JOINED_AT_ONCE)
    results[-1] = DescribeConfigsResult(resource_name="other")
    answer = DescribeConfigsResponse(results=results)
    parts, _ = finish(encode_parts_in_steps(answer, 0, b"prefix"))
    assert b"".join(parts) == b"prefix" + encode(answer, 0)  # type: ignore[arg-type]
    assert len(parts) > 9
    assert len({id(part) for part in parts}) == 3
