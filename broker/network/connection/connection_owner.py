"""The ports between a connection, the server that accepted it, and what authenticates its client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from odradek.broker.network.frames.frame_buffers import FrameBuffers
    from odradek.broker.network.frames.memory_pool import MemoryPool
    from odradek.broker.network.requests.large_requests import AbandonedRequests
    from odradek.broker.network.responses.response_sender import SentBytes
    from odradek.broker.network.sockets.close_reason import CloseReason
    from odradek.broker.network.sockets.direct_socket import DirectSocket
    from odradek.storage.disk.ports import IoPool
    from odradek.timer.clock import Clock
    from odradek.timer.task import TimerTask

ConnectionT = TypeVar("ConnectionT", contravariant=True)


class Priorities(Protocol[ConnectionT]):
    """Which connections make room for others. Implemented by `ConnectionPriorities`."""

    def client_ended(self, connection: ConnectionT) -> None:
        """Nothing more comes from the client; requests or answers may be left."""

    def begins_to_close(self, connection: ConnectionT) -> None:
        """The connection is aborted; `connection_closed` follows when the loop has closed it."""


class Authentication(Protocol):
    """What authenticates the client of one connection. Implemented by `authentication.Authentication`."""

    def takes(self, request: memoryview, received_ms: int, /) -> bool:
        """Whether the frame is part of the authentication, or the connection is closed. Else it is a request."""

    def refuses_frame(self) -> bool:
        """The next frame is above the limit. Returns whether that fails an authentication."""


class ConnectionOwner(Protocol[ConnectionT]):
    """The part of the server that a connection uses. Implemented by `SocketServer`."""

    clock: Clock
    io_pool: IoPool
    frame_buffers: FrameBuffers
    memory_pool: MemoryPool | None
    sent_bytes: SentBytes | None
    abandoned: AbandonedRequests

    @property
    def priorities(self) -> Priorities[ConnectionT]: ...

    def dispatch(self, connection: ConnectionT, request: memoryview, received_ms: int) -> None:
        """Decode the request, `begin` it and call its handler."""

    def call_soon(self, callback: Callable[[], None]) -> object: ...

    def open_direct(self, transport: asyncio.Transport) -> DirectSocket:
        """A second descriptor of the transport's socket."""

    def receiver_of(self, connection: ConnectionT) -> asyncio.BaseProtocol:
        """The protocol that receives while no large frame is received: the connection, or another in its place."""

    def identify(self, connection: ConnectionT) -> None:
        """Set the principal of a client that does not use SASL, or abort the connection."""

    def watch_idle(self, connection: ConnectionT) -> TimerTask | None:
        """Schedule calls of `close_if_idle`."""

    def connection_closed(self, connection: ConnectionT, reason: CloseReason, detail: str) -> None:
        """Count the closed connection, release its quota, log an unexpected reason."""
