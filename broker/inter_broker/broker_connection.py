"""A link to another broker over a socket: connect, send a request, wait for the answer.

A request opens the connection when there is none. It is dropped after an error, a time-out, a cancelled request, or an
invalid answer, since the next answer could be a wrong one. After a failed attempt to connect the next one waits
`RECONNECT_BACKOFF_MS` and has twice the time, up to `connection_setup_timeout_max_ms`. ApiVersions is sent before the
first request without a fixed version; most requests between brokers have the version of the inter-broker protocol.

Kafka: NetworkClient (with one request in flight), BrokerBlockingSender, InterBrokerSendThread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeVar, cast

from odradek.broker.inter_broker.request_format import (
    VersionMismatch,
    decode_answer,
    versions_in_common,
    versions_request,
)
from odradek.broker.machine.timed_waits import Deadline, pause
from odradek.broker.network.frames.answer_receiver import AnswerReceiver
from odradek.broker.network.frames.frame_buffers import FrameBuffers
from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.codec import EncodeError
from odradek.protocol.codec.decode_error import DecodeError
from odradek.protocol.codec.schema import Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.headers import RequestHeader, encode_request
from odradek.protocol.messages.api_versions import ApiVersionsResponse

if TYPE_CHECKING:
    from odradek.controller.model.broker_info import EndPoint
    from odradek.protocol.codec.schema import Request
    from odradek.timer.system_timer import SystemTimer

ResponseT = TypeVar("ResponseT", bound=Response)
Connect = Callable[["EndPoint", Callable[[], AnswerReceiver]], Awaitable[AnswerReceiver]]
"""Opens a connection for a protocol object. Raises: OSError."""
Reauthenticate = Callable[["EndPoint", AnswerReceiver], Awaitable[None]]
"""Authenticates again, when the session of a connection ends soon. Raises: OSError."""

RECONNECT_BACKOFF_MS: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkSettings:
    """Settings of all links of a broker."""

    connect: Connect
    timer: SystemTimer
    max_frame_bytes: int
    connection_setup_timeout_ms: int
    connection_setup_timeout_max_ms: int
    buffers: FrameBuffers
    reauthenticate: Reauthenticate | None = None
    """None: sessions do not end."""


class BrokerConnection:
    """Implements `ports.BrokerLink`."""

    def __init__(self, end_point: EndPoint, *, client_id: str, settings: LinkSettings) -> None:
        self._end_point = end_point
        self._client_id = client_id
        self._settings = settings
        self._turn = asyncio.Lock()  # requests are sent in the order of their calls
        self._closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._receiver: AnswerReceiver | None = None
        self._versions: dict[int, int] | None = None
        """The highest common version by API key; None before ApiVersions is answered."""
        self._correlation_id = 0
        self._failed_attempts = 0

    async def exchange(
        self, request: Request, response_type: type[ResponseT], *, version: int | None, timeout_ms: int
    ) -> ResponseT:
        async with self._turn:
            try:
                with Deadline(self._settings.timer, timeout_ms, lambda: f"{type(request).__name__} to {self}"):
                    receiver = self._receiver
                    if receiver is None or not receiver.is_open or receiver.usable_until_ms is not None:
                        receiver = await self._connected()
                    if version is None:
                        return await self._ask_in_agreed_version(receiver, request, response_type)
                    return await self._ask(receiver, request, response_type, version)
            except VersionMismatch:
                raise  # the connection stays usable
            except BaseException as error:
                self._disconnect(
                    error if isinstance(error, OSError) else ConnectionAbortedError("the request was cancelled")
                )
                raise

    def close(self) -> None:
        if not self._closed.done():
            self._closed.set_result(None)
        self._disconnect(ConnectionAbortedError(f"the link to {self} was closed"))

    def __str__(self) -> str:
        return self._end_point.connection_string

    async def _connected(self) -> AnswerReceiver:
        if self._closed.done():
            raise ConnectionAbortedError(f"the link to {self} was closed")
        receiver = self._receiver
        if receiver is not None and receiver.is_open:
            if receiver.usable_until_ms is None or self._settings.timer.monotonic_ms() < receiver.usable_until_ms:
                return receiver
            assert self._settings.reauthenticate is not None, "only a session with SASL ends"
            await self._settings.reauthenticate(self._end_point, receiver)
            return receiver
        self._versions = None
        timeout_ms = min(
            self._settings.connection_setup_timeout_ms << self._failed_attempts,
            self._settings.connection_setup_timeout_max_ms,
        )
        try:
            with Deadline(self._settings.timer, timeout_ms, lambda: f"Connecting to {self}"):
                self._receiver = await self._open()
        except OSError:
            self._failed_attempts += 1
            raise
        self._failed_attempts = 0
        return self._receiver

    async def _open(self) -> AnswerReceiver:
        settings = self._settings
        if self._failed_attempts:
            await pause(settings.timer, RECONNECT_BACKOFF_MS, until=self._closed)
        opening = asyncio.ensure_future(
            settings.connect(self._end_point, lambda: AnswerReceiver(settings.max_frame_bytes, settings.buffers))
        )
        try:
            both = cast("set[asyncio.Future[object]]", {opening, self._closed})
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if self._closed.done():
                raise ConnectionAbortedError(f"the link to {self} was closed")
        except BaseException:
            opening.cancel()
            opening.add_done_callback(_drop)
            raise
        return opening.result()

    async def _ask_in_agreed_version(
        self, receiver: AnswerReceiver, request: Request, response_type: type[ResponseT]
    ) -> ResponseT:
        version = await self._agreed_version(receiver, request.API_KEY)
        try:
            return await self._ask(receiver, request, response_type, version)
        except EncodeError as error:
            raise VersionMismatch(f"No common version with {self} can encode this request: {error}") from error

    async def _agreed_version(self, receiver: AnswerReceiver, api_key: int) -> int:
        if self._versions is None:
            self._versions = await self._ask_versions(receiver, API[ApiKey.API_VERSIONS].max_version)
        if api_key not in self._versions:
            raise VersionMismatch(f"No common version of {API[api_key].name} with {self}")
        return self._versions[api_key]

    async def _ask_versions(self, receiver: AnswerReceiver, version: int) -> dict[int, int]:
        """Any error but a version that is too high closes the connection: it says nothing of the versions.

        Kafka: NetworkClient.handleApiVersionsResponse.
        """
        response = await self._ask(receiver, versions_request(), ApiVersionsResponse, version)
        ours = versions_in_common(response)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and version > 0:
            return await self._ask_versions(receiver, min(ours.get(ApiKey.API_VERSIONS, 0), version - 1))
        if response.error_code != ErrorCode.NONE:
            raise ConnectionAbortedError(f"{self} answered ApiVersions with error {response.error_code}")
        return ours

    async def _ask(
        self, receiver: AnswerReceiver, request: Request, response_type: type[ResponseT], version: int
    ) -> ResponseT:
        header = self._header(request, version)
        frame = await receiver.exchange(encode_request(header, request))
        try:
            return decode_answer(frame, header, response_type)
        except DecodeError as error:
            raise ConnectionAbortedError(f"{self} sent an invalid answer to {header}: {error}") from error

    def _header(self, request: Request, version: int) -> RequestHeader:
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        return RequestHeader(API[request.API_KEY].key, version, self._correlation_id, self._client_id)

    def _disconnect(self, reason: OSError) -> None:
        receiver, self._receiver = self._receiver, None
        if receiver is not None:
            receiver.abort(reason)


def _drop(opened: asyncio.Future[AnswerReceiver]) -> None:
    """Abort a connection that was opened after the request was cancelled."""
    if not opened.cancelled() and opened.exception() is None:
        opened.result().abort(ConnectionAbortedError("the request was cancelled"))
