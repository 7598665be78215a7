from __future__ import annotations

import pytest

from odradek.broker.inter_broker.request_format import decode_answer, versions_in_common, versions_request
from odradek.protocol.api import ApiKey
from odradek.protocol.codec.decode_error import DecodeError
from odradek.protocol.errors import ErrorCode
from odradek.protocol.headers import RequestHeader, encode_response_parts
from odradek.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse


def test_versions_in_common_are_the_highest_of_both() -> None:
    served = [
        ApiVersion(api_key=ApiKey.PRODUCE, min_version=0, max_version=3),
        ApiVersion(api_key=ApiKey.FETCH, min_version=4, max_version=99),
        ApiVersion(api_key=ApiKey.METADATA, min_version=90, max_version=99),
        ApiVersion(api_key=999, min_version=0, max_version=1),
    ]
    assert versions_in_common(ApiVersionsResponse(api_keys=served)) == {ApiKey.PRODUCE: 3, ApiKey.FETCH: 17}


def test_an_answer_is_that_of_its_request() -> None:
    header = RequestHeader(ApiKey.API_VERSIONS, 4, 7, "me")
    response = ApiVersionsResponse(throttle_time_ms=5)
    frame = memoryview(bytes(b"".join(encode_response_parts(ApiKey.API_VERSIONS, 4, 7, response))))
    assert decode_answer(frame, header, ApiVersionsResponse) == response
    with pytest.raises(DecodeError, match="correlation id 7 instead of 8"):
        decode_answer(frame, RequestHeader(ApiKey.API_VERSIONS, 4, 8, "me"), ApiVersionsResponse)


def test_an_unsupported_version_is_answered_in_version_0() -> None:
    refused = ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    frame = memoryview(bytes(b"".join(encode_response_parts(ApiKey.API_VERSIONS, 0, 7, refused))))
    header = RequestHeader(ApiKey.API_VERSIONS, 4, 7, "me")
    assert decode_answer(frame, header, ApiVersionsResponse).error_code == ErrorCode.UNSUPPORTED_VERSION


def test_the_software_is_named() -> None:
    assert versions_request().client_software_name == "odradek"
