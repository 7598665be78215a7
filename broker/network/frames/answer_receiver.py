"""The receiving side of a connection to another broker: one request goes out, one response frame comes back.

Three things end the connection: bytes that arrive while no request waits, a frame that is too large, and the end of the
stream. A waiting request raises the reason; afterwards `is_open` is False. The returned frame is a view of the buffer
it was received into (`frame_assembler.py`): the records of a Fetch response are not copied.

Kafka: Selector, KafkaChannel, NetworkReceive.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, cast

from odradek.broker.network.frames.frame_assembler import FrameAssembler, FrameSizeError
from odradek.protocol.framing import frame_prefix

if TYPE_CHECKING:
    from odradek.broker.network.frames.frame_buffers import FrameBuffers

RECEIVE_BYTES: Final = 64 * 1024
"""Size of the receive buffer. A large frame is received directly into its own buffer."""


class AnswerReceiver(asyncio.BufferedProtocol):
    """The protocol object of one socket that this broker has opened."""

    def __init__(self, max_frame_bytes: int, buffers: FrameBuffers) -> None:
        self._frames = FrameAssembler(max_frame_bytes, buffers)
        self._space = memoryview(bytearray(RECEIVE_BYTES))
        self._is_direct = False
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[memoryview] | None = None
        self.usable_until_ms: int | None = None
        """Monotonic time from which on no request should be sent: the session ends soon. None: no end."""
        self.authenticate_version: int | None = None
        """The version of SaslAuthenticate; None: this side has not authenticated."""

    @property
    def is_open(self) -> bool:
        return self._transport is not None

    def set_socket_option(self, level: int, option: int, value: int) -> None:
        if self._transport is not None:
            self._transport.get_extra_info("socket").setsockopt(level, option, value)

    async def exchange(self, request: bytes) -> memoryview:
        """The response frame. Raises: OSError. A cancelled caller must `abort`: the response may still arrive."""
        if self._transport is None:
            raise ConnectionResetError("the connection was closed")
        assert self._answer is None, "one request at a time"
        self._answer = asyncio.get_running_loop().create_future()
        try:
            self._transport.write(frame_prefix(len(request)) + request)
            return await self._answer
        finally:
            self._answer = None

    def abort(self, reason: OSError) -> None:
        """Close the connection; a waiting `exchange` raises `reason`."""
        transport, self._transport = self._transport, None
        if transport is not None:
            transport.abort()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(reason)

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def get_buffer(self, sizehint: int) -> memoryview:
        self._is_direct = self._frames.wants_direct_receive
        return self._frames.free_space() if self._is_direct else self._space

    def buffer_updated(self, nbytes: int) -> None:
        try:
            if self._is_direct:
                self._frames.received(nbytes)
                frame = self._frames.finish_direct_receive()
            else:
                self._frames.feed(bytes(self._space[:nbytes]))
                frame = self._frames.next_frame()
        except FrameSizeError as error:
            self.abort(ConnectionAbortedError(str(error)))
            return
        if self._answer is None or self._answer.done():
            self.abort(ConnectionAbortedError("the broker sent bytes that no request waits for"))
        elif frame is not None:
            self._answer.set_result(frame)

    def eof_received(self) -> None:
        self.abort(ConnectionResetError("the broker has closed the connection"))

    def connection_lost(self, exc: Exception | None) -> None:
        self.abort(ConnectionResetError(str(exc or "the broker has closed the connection")))
