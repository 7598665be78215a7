"""The generated functions are the oracle: what is walked is the same, and what they refuse is not walked."""

from __future__ import annotations

import random

import pytest

from odradek.protocol.codec import codec
from odradek.protocol.codec.decode_error import DecodeError
from odradek.protocol.codec.field_walk import (
    READ_BYTES_MAX,
    WRITTEN_ELEMENTS_MAX,
    NotWalked,
    walk_decode,
    walk_encode,
)
from odradek.protocol.codec.schema import Message, RawTaggedField, Struct
from odradek.protocol.messages.api_versions import ApiVersionsRequest
from odradek.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from odradek.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from tests.support.wire.messages import every_message, random_struct
from tests.unit.protocol.codec.test_codec import Region, versions_of
from tests.unit.protocol.codec.test_decoder_source import mutated


def is_plain(value: object) -> bool:
    """Neither a long array nor tags to be sent on, at any depth."""
    if isinstance(value, list):
        return len(value) <= WRITTEN_ELEMENTS_MAX and all(map(is_plain, value))
    if not isinstance(value, Struct):
        return True
    return not value.unknown_tagged_fields and all(is_plain(getattr(value, field.name)) for field in value.FIELDS)


@pytest.mark.parametrize("message", every_message(), ids=lambda message: message.__name__)
def test_every_version_is_written_and_read_as_by_the_generated_functions(message: type[Message]) -> None:
    rng = random.Random(message.__name__)
    for version in versions_of(message):
        for value in (message(), *(random_struct(message, version, rng) for _ in range(3))):
            encoded = codec.encode(value, version)
            if is_plain(value):
                assert walk_encode(value, version) == encoded
            else:
                with pytest.raises(NotWalked):
                    walk_encode(value, version)
            if len(encoded) <= READ_BYTES_MAX:
                assert walk_decode(message, memoryview(b"xx" + encoded), version, 2) == value


@pytest.mark.parametrize("message", every_message(), ids=lambda message: message.__name__)
def test_damaged_bytes_are_read_as_by_the_generated_function_or_not_at_all(message: type[Message]) -> None:
    rng = random.Random(message.__name__)
    for version in versions_of(message):
        encoded = codec.encode(random_struct(message, version, rng), version)
        for data in (*(mutated(encoded, rng) for _ in range(8)), encoded[:-1], rng.randbytes(rng.randrange(60))):
            try:
                walked = walk_decode(message, data, version, 0)
            except NotWalked:
                continue
            try:
                assert codec.decode(message, data, version) == walked
            except DecodeError as error:
                pytest.fail(f"{message.__name__} v{version} {data!r} was read: {error}")


@pytest.mark.parametrize(
    ("message", "version"),
    [
        (MetadataRequest(allow_auto_topic_creation=False), 0),  # the version has no place for it
        (MetadataRequest(topics=[MetadataRequestTopic(name=None)]), 1),
        (MetadataRequest(topics=[MetadataRequestTopic(name="t")] * (WRITTEN_ELEMENTS_MAX + 1)), 12),
        (MetadataRequest(topics=[MetadataRequestTopic(topic_id=b"short")]), 12),
        (ApiVersionsRequest(client_software_name="n" * 40_000), 3),
        (ApiVersionsRequest(client_software_name=1), 3),
        (ApiVersionsRequest(), 99),
    ],
)
def test_what_is_not_plain_is_not_written(message: Message, version: int) -> None:
    with pytest.raises(NotWalked):
        walk_encode(message, version)


def test_unknown_tags_and_records_in_files_are_not_written() -> None:
    tagged = ApiVersionsRequest()
    tagged.unknown_tagged_fields = [RawTaggedField(7, b"")]
    partition = PartitionProduceData(records=Region())  # type: ignore[arg-type]
    in_file = ProduceRequest(topic_data=[TopicProduceData(name="t", partition_data=[partition])])
    for message in (tagged, in_file):
        with pytest.raises(NotWalked):
            walk_encode(message, 4 if message is tagged else 9)


def test_the_size_that_is_read_has_a_limit() -> None:
    name = "n" * 100
    size = len(codec.encode(ApiVersionsRequest(client_software_name=name), 3))
    most = ApiVersionsRequest(client_software_name=name + "n" * (READ_BYTES_MAX - size - 1))
    encoded = codec.encode(most, 3)
    assert len(encoded) == READ_BYTES_MAX
    assert walk_decode(ApiVersionsRequest, encoded, 3, 0) == most
    with pytest.raises(NotWalked):
        walk_decode(ApiVersionsRequest, encoded + b"\0", 3, 0)
    with pytest.raises(NotWalked):
        walk_decode(ApiVersionsRequest, encoded, 99, 0)
