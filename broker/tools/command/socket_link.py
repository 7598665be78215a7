"""A link of a command to a broker: one connection, one request at a time, on `socket_loop`.

`BrokerConnection` is the same for brokers, on asyncio. An attempt to connect after failed ones has more time, up to
`connection_setup_timeout_max_ms`; callers wait for `retry_backoff_ms` before they ask again.

Kafka: NetworkClient (with one request in flight).
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from odradek.broker.inter_broker.request_format import (
    VersionMismatch,
    decode_answer,
    versions_in_common,
    versions_request,
)
from odradek.broker.tools.command.socket_loop import READ, WRITE, Event, wait_for
from odradek.protocol.api import API, ApiKey
from odradek.protocol.codec.decode_error import DecodeError
from odradek.protocol.codec.encode_error import EncodeError
from odradek.protocol.codec.first_uses import decode, encode
from odradek.protocol.codec.schema import Request, Response
from odradek.protocol.errors import ErrorCode
from odradek.protocol.framing import frame_prefix
from odradek.protocol.headers import RequestHeader, encode_request
from odradek.protocol.messages.api_versions import ApiVersionsResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from odradek.broker.tools.command.addresses import Address
    from odradek.broker.tools.command.client_config import ClientConfig
    from odradek.broker.tools.command.tls_socket import TlsSocket
    from odradek.timer.clock import Clock

    Stream: TypeAlias = socket.socket | TlsSocket

T = TypeVar("T")
ResponseT = TypeVar("ResponseT", bound=Response)
CHUNK_BYTES = 256 * 1024


class SocketLink:
    """The first request opens the connection, and the next one after a failure."""

    def __init__(self, address: Address, config: ClientConfig, clock: Clock) -> None:
        self._address = address
        self._config = config
        self._clock = clock
        self._socket: Stream | None = None
        self._versions: dict[int, int] = {}
        """The highest common version by API key."""
        self._correlation_id = 0
        self._under_way: Event | None = None
        """Set when the present request has ended. None: there is none."""
        self._setup_timeout_ms = config.connection_setup_timeout_ms
        """Of the next attempt to connect."""
        self._usable_until_ms: int | None = None
        """Monotonic time from which on the connection is opened anew: the SASL session ends soon. None: no end."""

    async def exchange(
        self, request: Request, response_type: type[ResponseT], timeout_ms: int, *, version: int | None = None
    ) -> ResponseT:
        """Send a request, in the highest common version unless one is given, and wait for its answer.

        Raises: OSError (TimeoutError is one) if there was no answer; VersionMismatch.
        """

        async def ask(sock: Stream, until_ms: int) -> ResponseT:
            chosen = self._version(request) if version is None else version
            return await self._ask(sock, request, response_type, chosen, until_ms)

        return await self._alone(ask, request, timeout_ms)

    async def send(self, request: Request, timeout_ms: int) -> None:
        """Send a request without an answer (Produce with acks=0) in the highest common version. Raises: OSError."""

        async def send(sock: Stream, until_ms: int) -> None:
            _, encoded = self._encoded(request, self._version(request))
            await self._send(sock, frame_prefix(len(encoded)) + encoded, until_ms)

        await self._alone(send, request, timeout_ms)

    async def _alone(
        self, work: Callable[[Stream, int], Coroutine[object, None, T]], request: Request, timeout_ms: int
    ) -> T:
        """Use the connection when no other request does. Its time begins then."""
        while self._under_way is not None:
            await self._under_way.wait()
        ended = self._under_way = Event()
        until_ms = self._clock.monotonic_ms() + timeout_ms
        try:
            return await work(await self._connected(until_ms), until_ms)
        except VersionMismatch:
            raise  # the connection stays usable
        except TimeoutError:
            self.close()
            raise TimeoutError(f"{self._address} did not answer {type(request).__name__} in {timeout_ms} ms") from None
        except BaseException:
            self.close()
            raise
        finally:
            self._under_way = None
            ended.set()

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    async def _connected(self, until_ms: int) -> Stream:
        is_over = self._usable_until_ms is not None and self._clock.monotonic_ms() >= self._usable_until_ms
        if self._socket is not None and (is_over or not _is_open(self._socket)):
            self.close()
        if self._socket is None:
            connect_until_ms = min(until_ms, self._clock.monotonic_ms() + self._setup_timeout_ms)
            self._setup_timeout_ms = min(2 * self._setup_timeout_ms, self._config.connection_setup_timeout_max_ms)
            self._socket = await self._secured(await self._open(connect_until_ms), connect_until_ms)
            self._setup_timeout_ms = self._config.connection_setup_timeout_ms
            await self._authenticate(self._socket, until_ms)
            self._versions = await self._ask_versions(self._socket, API[ApiKey.API_VERSIONS].max_version, until_ms)
        return self._socket

    async def _authenticate(self, sock: Stream, until_ms: int) -> None:
        sasl = self._config.sasl
        if sasl is None:
            return
        from odradek.broker.tools.command.sasl_client import authenticate_client

        async def send(request: bytes) -> bytes:
            return bytes(await self._send_and_receive(sock, request, until_ms))

        usable_ms = (
            await authenticate_client(sasl, self._address.host, self._config.client_id, send, self._clock)
        ).usable_ms
        self._usable_until_ms = self._clock.monotonic_ms() + usable_ms if usable_ms else None

    async def _secured(self, connected: socket.socket, until_ms: int) -> Stream:
        if self._config.tls_context is None:
            return connected
        from odradek.broker.tools.command.tls_socket import TlsSocket

        return await TlsSocket.connect(connected, self._config.tls_context, self._address.host, until_ms)

    async def _open(self, until_ms: int) -> socket.socket:
        failure: OSError = ConnectionError(f"{self._address.host} has no address")
        name = self._address.host
        # With a str, Python imports the tables of international names.
        host = name.encode() if name.isascii() else name
        for family, kind, protocol, _, address in socket.getaddrinfo(host, self._address.port, type=socket.SOCK_STREAM):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.setblocking(False)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                try:
                    sock.connect(address)
                except BlockingIOError:
                    await wait_for(sock, WRITE, until_ms)
                    if error := sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR):
                        raise OSError(error, f"{_reason(error)} ({self._address})") from None
                return sock
            except TimeoutError:
                sock.close()
                failure = TimeoutError(f"connecting to {self._address} takes too long")
            except OSError as error:
                sock.close()
                failure = error
            except BaseException:
                sock.close()
                raise
        raise failure

    async def _ask_versions(self, sock: Stream, version: int, until_ms: int) -> dict[int, int]:
        response = await self._ask(sock, versions_request(), ApiVersionsResponse, version, until_ms)
        ours = versions_in_common(response)
        if response.error_code == ErrorCode.UNSUPPORTED_VERSION and version > 0:
            return await self._ask_versions(sock, min(ours.get(ApiKey.API_VERSIONS, 0), version - 1), until_ms)
        if response.error_code != ErrorCode.NONE:
            raise ConnectionError(f"{self._address} answered ApiVersions with error {response.error_code}")
        return ours

    def _version(self, request: Request) -> int:
        """The highest common version. Raises: VersionMismatch."""
        version = self._versions.get(request.API_KEY)
        if version is None:
            raise VersionMismatch(f"No common version of {API[request.API_KEY].name} with {self._address}")
        return version

    def _encoded(self, request: Request, version: int) -> tuple[RequestHeader, bytes]:
        """Raises: VersionMismatch."""
        self._correlation_id = (self._correlation_id + 1) & 0x7FFFFFFF
        header = RequestHeader(ApiKey(request.API_KEY), version, self._correlation_id, self._config.client_id)
        try:
            return header, encode_request(header, request, encode)
        except EncodeError as error:
            raise VersionMismatch(f"No common version with {self._address} can encode this request: {error}") from error

    async def _ask(
        self, sock: Stream, request: Request, response_type: type[ResponseT], version: int, until_ms: int
    ) -> ResponseT:
        header, encoded = self._encoded(request, version)
        frame = await self._send_and_receive(sock, encoded, until_ms)
        try:
            return decode_answer(memoryview(frame), header, response_type, decode)
        except DecodeError as error:
            raise ConnectionAbortedError(f"{self._address} sent an invalid answer to {header}: {error}") from error

    async def _send_and_receive(self, sock: Stream, request: bytes, until_ms: int) -> bytearray:
        """The answer to a frame, both without their sizes."""
        await self._send(sock, frame_prefix(len(request)) + request, until_ms)
        size = int.from_bytes(await self._receive(sock, 4, until_ms), "big", signed=True)
        if size < 0:
            raise ConnectionAbortedError(f"{self._address} sent an answer of {size} bytes")
        return await self._receive(sock, size, until_ms)

    async def _send(self, sock: Stream, data: bytes, until_ms: int) -> None:
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[sock.send(rest) :]
            except BlockingIOError:
                await wait_for(sock, WRITE, until_ms)

    async def _receive(self, sock: Stream, size: int, until_ms: int) -> bytearray:
        """The memory grows with what has come, not with what the broker has announced."""
        received = bytearray()
        while len(received) < size:
            try:
                chunk = sock.recv(min(size - len(received), CHUNK_BYTES))
            except BlockingIOError:
                await wait_for(sock, READ, until_ms)
                continue
            if not chunk:
                raise ConnectionResetError(f"{self._address} closed the connection")
            received += chunk
        return received


def _is_open(sock: Stream) -> bool:
    """Whether the other end has left a connection open on which no answer is due: it closes idle ones."""
    try:
        sock.recv(1)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _reason(error: int) -> str:
    import os

    return os.strerror(error)
