"""Request and response headers, and whole requests and responses.

A request begins with its API key, version and correlation id; then, except for ControlledShutdown v0, the client id,
which keeps its classic int16 length in every version; then, when the version of the API is flexible, tagged fields. A
response begins with the correlation id and, when flexible, tagged fields; ApiVersions never has them.

`decode_request_header` raises a different error for each case that a broker treats differently: bytes that are no
header and unknown keys (the connection is closed), and versions that are not served (closed too, except that
ApiVersions is answered in version 0 with error 35).

Kafka: RequestHeader, ResponseHeader and RequestUtils.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from struct import Struct as Layout
from struct import error as StructError
from typing import Any

from odradek.protocol.api import API, ApiKey, ApiSpec
from odradek.protocol.codec.codec import (
    DecodeBudget,
    DecodeError,
    Part,
    TooLargeError,
    decode,
    encode,
    encode_into,
    encode_parts,
    encode_parts_in_steps,
    parts_of,
    size_of,
)
from odradek.protocol.codec.decode_error import find_unknown_tagged_fields
from odradek.protocol.codec.limits import MAX_DECODED_VALUES, MAX_TAGGED_FIELDS
from odradek.protocol.codec.schema import Message, Request, Response
from odradek.protocol.framing import MAX_FRAME_BYTES, SIZE_BYTES

_FIXED = Layout(">hhi")
_FIXED_WITH_CLIENT_ID = Layout(">hhih")
_INT32 = Layout(">i")
_FIXED_BYTES = _FIXED.size
_FIXED_WITH_CLIENT_ID_BYTES = _FIXED_WITH_CLIENT_ID.size
_unpack_fixed = _FIXED_WITH_CLIENT_ID.unpack_from
_FRAME_START = Layout(">ii")
_FRAME_START_WITH_TAGS = Layout(">iix")
"""The size of the frame and the header of a response."""


class RequestHeader:
    """What precedes a request. Like Apache Kafka, a null client id is read as an empty one."""

    __slots__ = ("api_key", "api_version", "client_id", "correlation_id")

    def __init__(self, api_key: int, api_version: int, correlation_id: int, client_id: str | None = "") -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id or ""

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RequestHeader):
            return NotImplemented
        return (
            self.api_key == other.api_key
            and self.api_version == other.api_version
            and self.correlation_id == other.correlation_id
            and self.client_id == other.client_id
        )

    __hash__ = None  # type: ignore[assignment]  # mutable

    def __repr__(self) -> str:
        spec = API.get(self.api_key)
        name = spec.name if spec else self.api_key
        return (
            f"RequestHeader({name} v{self.api_version}, correlation_id={self.correlation_id}, "
            f"client_id={self.client_id!r})"
        )


class UnknownApiKeyError(DecodeError):
    """A request for an API this broker does not have; the rest of its header cannot be read."""

    def __init__(self, api_key: int, api_version: int, correlation_id: int) -> None:
        super().__init__(f"Unknown API key {api_key}")
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id


class UnsupportedVersionError(DecodeError):
    """A request in a version that is not served. Its header was read; its body is unreadable."""

    def __init__(self, header: RequestHeader) -> None:
        super().__init__(f"{API[header.api_key].name} version {header.api_version} is not supported")
        self.header = header

    @property
    def is_api_versions(self) -> bool:
        """True: to be answered with a version 0 body and UNSUPPORTED_VERSION. False: the connection is closed."""
        return self.header.api_key == ApiKey.API_VERSIONS


def decode_request_header(buffer: memoryview | bytes, apis: Mapping[int, ApiSpec] = API) -> tuple[RequestHeader, int]:
    """The header at the start of a frame, and the position of the body. `apis`: the served APIs by key."""
    try:
        api_key, version, correlation_id, length = _unpack_fixed(buffer)
        spec = apis.get(api_key)
        if spec is None:
            raise UnknownApiKeyError(api_key, version, correlation_id)
        position = _FIXED_WITH_CLIENT_ID_BYTES
        client_id = ""
        if 0 <= version < spec.has_client_id_from:
            position = _FIXED_BYTES
        elif length > 0:
            position += length
            if position > len(buffer):
                raise DecodeError(f"the client id claims {length} bytes, which are not there")
            client_id = str(buffer[position - length : position], "utf-8")
        if version >= spec.flexible_from:
            position = _skip_tagged_fields(buffer, position) if buffer[position] else position + 1
    except (StructError, IndexError, ValueError) as error:
        raise DecodeError(f"not a request header: {error}") from error
    header = RequestHeader(spec.key, version, correlation_id, client_id)
    if not spec.min_version <= version <= spec.max_version:
        raise UnsupportedVersionError(header)
    return header, position


def _skip_tagged_fields(buffer: memoryview | bytes, position: int) -> int:
    count = buffer[position]
    position += 1
    if count:
        _, position, _ = find_unknown_tagged_fields(
            buffer, position, len(buffer), count, MAX_DECODED_VALUES, MAX_TAGGED_FIELDS
        )
    return position


def encode_request(header: RequestHeader, message: Request, encode: Callable[[Message, int], bytes] = encode) -> bytes:
    """A whole request, without the length that frames it. `encode`: that of `codec` or of `first_uses`."""
    spec = API[header.api_key]
    header_version = spec.request_header_version(header.api_version)
    if header_version == 0:
        prefix = _FIXED.pack(header.api_key, header.api_version, header.correlation_id)
    else:
        client_id = header.client_id.encode()
        prefix = _FIXED_WITH_CLIENT_ID.pack(
            header.api_key, header.api_version, header.correlation_id, len(client_id)
        ) + (client_id if header_version == 1 else client_id + b"\0")
    return prefix + encode(message, header.api_version)


def encode_response_parts(api_key: int, version: int, correlation_id: int, response: Response) -> list[Part]:
    """A whole response, without the length that frames it; records stay parts of their own."""
    return encode_parts(response, version, _response_header(api_key, version, correlation_id))


def encode_response_frame(api_key: int, version: int, correlation_id: int, response: Response) -> list[Part]:
    """The same with the size of the frame in front."""
    pieces: list[Any] = [b""]
    marks = encode_into(response, version, pieces)
    if not marks:
        return [response_frame(api_key, version, correlation_id, pieces)]
    first: Any
    first, *others = parts_of(pieces, marks)  # the first one is bytes, because what begins it is not marked
    return [response_frame(api_key, version, correlation_id, [first], size_of(others)), *others]


def response_frame(
    api_key: int, version: int, correlation_id: int, pieces: list[bytes], following_bytes: int = 0
) -> bytes:
    """A whole response, the pieces of whose body are in memory, behind the size of its frame; or the beginning of one
    whose body goes on for `following_bytes`.
    """
    body = b"".join(pieces)
    start = _FRAME_START_WITH_TAGS if version >= API[api_key].tagged_response_headers_from else _FRAME_START
    size = len(body) + following_bytes + start.size - SIZE_BYTES
    if size > MAX_FRAME_BYTES:
        raise TooLargeError(f"a frame of {size} bytes cannot be sent")
    return start.pack(size, correlation_id) + body


def encode_response_in_steps(
    api_key: int, version: int, correlation_id: int, response: Response
) -> Generator[None, None, list[Part]]:
    """The same in steps: the caller may pause at each yield. The response must not change meanwhile."""
    return encode_parts_in_steps(response, version, _response_header(api_key, version, correlation_id))


def _response_header(api_key: int, version: int, correlation_id: int) -> bytes:
    header = _INT32.pack(correlation_id)
    return header + b"\0" if version >= API[api_key].tagged_response_headers_from else header


def decode_response_header(api_key: int, version: int, buffer: memoryview | bytes) -> tuple[int, int]:
    """The correlation id of a response, and the position of its body."""
    try:
        (correlation_id,) = _INT32.unpack_from(buffer, 0)
        position = _INT32.size
        if API[api_key].response_header_version(version):
            position = _skip_tagged_fields(buffer, position) if buffer[position] else position + 1
    except (StructError, IndexError, ValueError) as error:
        raise DecodeError(f"not a response header: {error}") from error
    return correlation_id, position


def decode_request(buffer: memoryview | bytes, budget: DecodeBudget | None = None) -> tuple[RequestHeader, Request]:
    """A whole request: its header and its body."""
    header, position = decode_request_header(buffer)
    return header, decode(API[header.api_key].request_type(), buffer, header.api_version, budget, position)


def decode_response(
    api_key: int, version: int, buffer: memoryview | bytes, budget: DecodeBudget | None = None
) -> tuple[int, Response]:
    """A whole response: (correlation id, body)."""
    correlation_id, position = decode_response_header(api_key, version, buffer)
    return correlation_id, decode(API[api_key].response_type(), buffer, version, budget, position)
