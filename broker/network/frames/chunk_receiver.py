"""Receives each read into one buffer, which all connections of a server share, and gives the connection a copy.

Otherwise the event loops make a block of 256 KB for each read, and cut it to what was read. With TLS they make one for
each record of at most 16 KB: 16 blocks, with holes between, for one read of the socket. Without TLS uvloop needs none
of this: it has such a buffer itself.
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
