from __future__ import annotations

import random
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol import headers
from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec import limits
from odradek.protocol.codec.codec import DecodeError, decode_from, encode
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.codec.varint import write_uvarint
from odradek.protocol.framing import frame
from odradek.protocol.headers import (
    RequestHeader,
    UnknownApiKeyError,
    UnsupportedVersionError,
    decode_request,
    decode_request_header,
    decode_response,
    decode_response_header,
    encode_request,
    encode_response_frame,
    encode_response_parts,
    response_frame,
)
from odradek.protocol.messages import request_header
from odradek.protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from odradek.protocol.messages.fetch import FetchableTopicResponse, FetchResponse, PartitionData
from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support.wire.messages import random_struct

EVERY_VERSION = [(spec, version) for spec in API.values() for version in range(spec.min_version, spec.max_version + 1)]


def test_classic_request() -> None:
    encoded = encode_request(RequestHeader(ApiKey.METADATA, 1, 7, "me"), MetadataRequest(topics=None))
    assert encoded.hex() == "000300010000000700026d65ffffffff"


def test_flexible_request_keeps_the_classic_client_id() -> None:
    encoded = encode_request(RequestHeader(ApiKey.METADATA, 12, 7, "me"), MetadataRequest(topics=None))
    assert encoded.hex() == "0003000c0000000700026d650000010000"


def test_controlled_shutdown_v0_has_no_client_id() -> None:
    header, position = decode_request_header(bytes.fromhex("000700000000000900000001"))
    assert header == RequestHeader(ApiKey.CONTROLLED_SHUTDOWN, 0, 9)
    assert position == 8


def test_null_client_id_is_read_as_an_empty_one() -> None:
    header, position = decode_request_header(bytes.fromhex("0003000100000007ffffffffffff"))
    assert header.client_id == ""
    assert position == 10


@pytest.mark.parametrize(("spec", "version"), EVERY_VERSION, ids=str)
def test_requests_and_responses_round_trip(spec: headers.ApiSpec, version: int) -> None:
    rng = random.Random(version)
    header = RequestHeader(spec.key, version, 12345, "" if spec.request_header_version(version) == 0 else "clïent")
    request = random_struct(spec.request_type(), version, rng)
    assert isinstance(request, Request)
    assert decode_request(memoryview(encode_request(header, request))) == (header, request)
    response = random_struct(spec.response_type(), version, rng)
    assert isinstance(response, Response)
    encoded = b"".join(bytes(part) for part in encode_response_parts(spec.key, version, -5, response))  # type: ignore[arg-type]
    assert decode_response(spec.key, version, memoryview(encoded)) == (-5, response)


@given(st.sampled_from(EVERY_VERSION), st.integers(-(1 << 31), (1 << 31) - 1), st.text(max_size=20))
def test_headers_are_those_of_the_schema(spec_version: tuple[headers.ApiSpec, int], number: int, client: str) -> None:
    spec, version = spec_version
    header_version = spec.request_header_version(version)
    data = request_header.RequestHeader(
        request_api_key=spec.key, request_api_version=version, correlation_id=number, client_id=client
    )
    encoded = encode(data, header_version)
    header, position = decode_request_header(encoded + b"body")
    assert position == len(encoded)
    assert header == RequestHeader(spec.key, version, number, client if header_version else "")
    response = encode(request_header.ResponseHeader(correlation_id=number), spec.response_header_version(version))
    assert decode_response_header(spec.key, version, response + b"body") == (number, len(response))


def test_tagged_fields_of_a_header_are_skipped() -> None:
    encoded = encode_request(RequestHeader(ApiKey.METADATA, 12, 7, "me"), MetadataRequest(topics=None))
    tagged = encoded[:12] + bytes.fromhex("020001aa0702bbcc") + encoded[13:]
    header, request = decode_request(memoryview(tagged))
    assert header.client_id == "me"
    assert request == MetadataRequest(topics=None)
    response = bytes.fromhex("00000007010301ff")
    assert decode_response_header(ApiKey.METADATA, 12, response) == (7, 8)


def test_a_skipped_tagged_field_is_not_copied() -> None:
    """A frame may have 100 MB, all of them in such a field; copying it had stopped the event loop for 40 ms."""
    size = 8 << 20
    encoded = encode_request(RequestHeader(ApiKey.API_VERSIONS, 3, 7, "me"), ApiVersionsRequest())
    tagged = encoded[:12] + b"\x01\x00" + write_uvarint(size) + bytes(size) + encoded[13:]
    tracemalloc.start()
    try:
        header, position = decode_request_header(memoryview(tagged))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()
    assert header.correlation_id == 7
    assert tagged[position:] == encoded[13:]


def test_the_response_header_of_api_versions_has_no_tagged_fields() -> None:
    (encoded,) = encode_response_parts(ApiKey.API_VERSIONS, 3, 7, ApiVersionsResponse())
    assert isinstance(encoded, bytes)
    assert encoded == b"\0\0\0\x07" + encode(ApiVersionsResponse(), 3)
    (encoded,) = encode_response_parts(ApiKey.METADATA, 12, 7, MetadataResponse())
    assert encoded == b"\0\0\0\x07\0" + encode(MetadataResponse(), 12)


def test_response_with_records_leaves_them_in_parts_of_their_own() -> None:
    records = memoryview(b"records")
    response = FetchResponse(
        responses=[FetchableTopicResponse(topic_id=bytes(16), partitions=[PartitionData(records=records)])]
    )
    parts = encode_response_parts(ApiKey.FETCH, 17, 1, response)
    assert [type(part) for part in parts] == [bytes, memoryview, bytes]
    assert parts[1] is records
    assert decode_from(FetchResponse, b"".join(parts), 17, position=5)[0] == response  # type: ignore[arg-type]


def test_unknown_api_key_error_names_the_key_and_version() -> None:
    with pytest.raises(UnknownApiKeyError, match="Unknown API key 999") as caught:
        decode_request_header(bytes.fromhex("03e7000200000007ffff"))
    assert (caught.value.api_key, caught.value.api_version, caught.value.correlation_id) == (999, 2, 7)


@pytest.mark.parametrize("key", [52, 64, 71, 75, -1])
def test_apis_of_other_kinds_of_brokers_are_unknown(key: int) -> None:
    with pytest.raises(UnknownApiKeyError):
        decode_request_header(key.to_bytes(2, "big", signed=True) + bytes(8))


@pytest.mark.parametrize("version", [5, 99, 32767, -1])
def test_unsupported_api_versions_can_be_answered(version: int) -> None:
    encoded = encode_request(RequestHeader(ApiKey.API_VERSIONS, 3, 77, "new"), ApiVersionsRequest())
    flexible = encoded[:2] + version.to_bytes(2, "big", signed=True) + encoded[4:]
    with pytest.raises(UnsupportedVersionError) as caught:
        decode_request_header(flexible)
    assert caught.value.is_api_versions
    assert caught.value.header == RequestHeader(ApiKey.API_VERSIONS, version, 77, "new")


def test_unsupported_version_of_another_api_cannot_be_answered() -> None:
    with pytest.raises(UnsupportedVersionError, match="Metadata version 13 is not supported") as caught:
        decode_request_header(bytes.fromhex("0003000d00000007ffff00"))
    assert not caught.value.is_api_versions


def test_every_cut_of_a_header_is_a_decode_error() -> None:
    encoded = encode_request(RequestHeader(ApiKey.METADATA, 12, 7, "client"), MetadataRequest())[:17]
    for length in range(len(encoded)):
        with pytest.raises(DecodeError):
            decode_request_header(encoded[:length])


def test_a_client_id_that_is_not_text_is_a_decode_error() -> None:
    with pytest.raises(DecodeError, match="utf-8"):
        decode_request_header(bytes.fromhex("00030001000000070002c328ffffffff"))


def test_tagged_fields_of_a_header_are_limited() -> None:
    def header(count: int) -> bytes:
        tags = b"".join(write_uvarint(tag) + b"\0" for tag in range(count))
        return bytes.fromhex("0003000c00000007ffff") + write_uvarint(count) + tags

    decode_request_header(header(limits.MAX_TAGGED_FIELDS))
    with pytest.raises(DecodeError, match="at most 128"):
        decode_request_header(header(limits.MAX_TAGGED_FIELDS + 1))


def test_twenty_million_tagged_fields_are_refused_by_their_number() -> None:
    with pytest.raises(DecodeError, match="claims 20000000 tagged fields"):
        decode_request_header(bytes.fromhex("0003000c00000007ffff") + write_uvarint(20_000_000) + bytes(1024))


@given(st.binary(max_size=60))
def test_any_bytes_are_a_header_or_a_decode_error(data: bytes) -> None:
    try:
        header, position = decode_request_header(memoryview(data))
    except DecodeError:
        return
    assert header.api_key in API
    assert 8 <= position <= len(data)


@pytest.mark.parametrize("version", [0, 4, 12])
@pytest.mark.parametrize("key", [ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.FETCH])
def test_a_response_frame_is_the_response_behind_its_size(key: ApiKey, version: int) -> None:
    version = min(version, API[key].max_version)
    response = random_struct(API[key].response_type(), version, random.Random(version))
    assert isinstance(response, Response)
    parts = encode_response_parts(key, version, -5, response)
    assert encode_response_frame(key, version, -5, response) == frame(parts)
    assert b"".join(map(bytes, encode_response_frame(key, version, -5, response))) == response_frame(  # type: ignore[arg-type]
        key, version, -5, [encode(response, version)]
    )
