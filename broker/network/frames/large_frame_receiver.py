"""Receives a large frame into its own buffer, without a copy.

Kafka: NetworkReceive.
"""

from __future__ import annotations

import asyncio
from typing import Generic, Protocol, TypeVar


class Replaced(Protocol):
    """What a connection does beside receiving. Implemented by `connection.Connection`."""

    def eof_received(self) -> bool: ...

    def pause_writing(self) -> None: ...

    def resume_writing(self) -> None: ...

    def connection_lost(self, exc: Exception | None) -> None: ...


class LargeFrames(Replaced, Protocol):
    """The connection that the frame belongs to. Implemented by `connection.Connection`."""

    def large_frame_space(self) -> memoryview:
        """The rest of the frame's buffer."""

    def large_frame_received(self, count: int) -> None:
        """`count` bytes of that space are filled."""


ConnectionT = TypeVar("ConnectionT", bound=Replaced)


class BufferedReceiver(asyncio.BufferedProtocol, Generic[ConnectionT]):
    """Receives in place of a connection. All but `get_buffer` and `buffer_updated` goes to the connection."""

    __slots__ = ("_connection",)

    def __init__(self, connection: ConnectionT) -> None:
        self._connection = connection

    def eof_received(self) -> bool:
        return self._connection.eof_received()

    def pause_writing(self) -> None:
        self._connection.pause_writing()

    def resume_writing(self) -> None:
        self._connection.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._connection.connection_lost(exc)


class LargeFrameReceiver(BufferedReceiver[LargeFrames]):
    """Replaces a connection while a large frame is received: the loop writes directly into the frame's buffer."""

    __slots__ = ()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._connection.large_frame_space()

    def buffer_updated(self, nbytes: int) -> None:
        self._connection.large_frame_received(nbytes)
