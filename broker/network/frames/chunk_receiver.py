"""Receives what one read of a connection brings through a buffer that all connections share.

Without it the event loops make a block of 256 KB for each read, and cut it to what was read. With TLS that is a block
for each record of at most 16 KB: 16 of them, with holes, for one read of the socket. uvloop without TLS has such a
buffer itself.
"""

from __future__ import annotations

from typing import Protocol

from odradek.broker.network.frames.large_frame_receiver import BufferedReceiver, Replaced


class Chunks(Replaced, Protocol):
    """The connection that reads. Implemented by `connection.Connection`."""

    def data_received(self, data: bytes) -> None: ...


class ChunkReceiver(BufferedReceiver[Chunks]):
    """Replaces a connection except while a large frame is received. `buffer` is free again when `buffer_updated`
    returns, which the loop calls before anything else.
    """

    __slots__ = ("_buffer",)

    def __init__(self, connection: Chunks, buffer: memoryview) -> None:
        super().__init__(connection)
        self._buffer = buffer

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer

    def buffer_updated(self, nbytes: int) -> None:
        self._connection.data_received(bytes(self._buffer[:nbytes]))
