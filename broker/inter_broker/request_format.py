"""What a client of a broker does with bytes: agrees on versions, and decodes answers. No event loop and no sockets.

Kafka: NodeApiVersions.latestUsableVersion, NetworkClient.parseResponse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.codec import decode
from odradek.protocol.codec.decode_error import DecodeError
from odradek.protocol.codec.schema import Message, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.headers import RequestHeader, decode_response_header
from odradek.protocol.messages.api_versions import ApiVersionsRequest

if TYPE_CHECKING:
    from odradek.protocol.messages.api_versions import ApiVersionsResponse

M = TypeVar("M", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Response)

SOFTWARE_NAME: Final = "odradek"
SOFTWARE_VERSION: Final = "3.9"
_UNSUPPORTED_VERSION: Final = ErrorCode.UNSUPPORTED_VERSION.to_bytes(2, "big")


class VersionMismatch(OSError):
    """The two brokers have no version of an API in common, or none that can encode the request."""


def versions_request() -> ApiVersionsRequest:
    """The first request of a connection."""
    return ApiVersionsRequest(client_software_name=SOFTWARE_NAME, client_software_version=SOFTWARE_VERSION)


def versions_in_common(response: ApiVersionsResponse) -> dict[int, int]:
    """The highest common version by API key."""
    return {
        served.api_key: min(served.max_version, API[served.api_key].max_version)
        for served in response.api_keys
        if served.api_key in API
        and max(served.min_version, API[served.api_key].min_version)
        <= min(served.max_version, API[served.api_key].max_version)
    }


class Decode(Protocol):
    """`decode` of `codec` or of `first_uses`."""

    def __call__(
        self, message_type: type[M], buffer: memoryview, version: int, budget: None, position: int, /
    ) -> M: ...


def decode_answer(
    frame: memoryview, header: RequestHeader, response_type: type[ResponseT], decode: Decode = decode
) -> ResponseT:
    """The answer to a request. Raises: DecodeError, also if it is the answer to another request."""
    version = header.api_version
    # A broker answers an unsupported ApiVersions in version 0; every version begins with the same error code.
    correlation_id, position = decode_response_header(header.api_key, version, frame)
    if correlation_id != header.correlation_id:
        raise DecodeError(f"correlation id {correlation_id} instead of {header.correlation_id}")
    if header.api_key == ApiKey.API_VERSIONS and frame[position : position + 2] == _UNSUPPORTED_VERSION:
        version = 0
    return decode(response_type, frame, version, None, position)
