"""A TCP proxy that passes bytes on, and holds them back in one direction or in both.

Held bytes are not lost: they arrive when the direction is open again, like packets that TCP repeats, unless one of the
ends has closed the connection by then.
"""

from __future__ import annotations

import asyncio
import contextlib

from tests.support.processes.ports import LOOPBACK
from tests.support.wire.proxy_server import ProxyServer, closing

CHUNK_BYTES = 65536


class ByteProxy:
    """In front of one port; each connection to it is one to the port behind."""

    def __init__(self, target_port: int) -> None:
        self._target_port = target_port
        self._forward = asyncio.Event()
        self._backward = asyncio.Event()
        self._server = ProxyServer(self._serve)
        self._server.start()
        self.address = self._server.address
        self.heal()

    def cut(self, *, forward: bool = True, backward: bool = True) -> None:
        """Hold back what clients send (`forward`), what they are answered (`backward`), or both."""
        for is_cut, event in ((forward, self._forward), (backward, self._backward)):
            self._server.loop.call_soon_threadsafe(event.clear if is_cut else event.set)

    def heal(self) -> None:
        self.cut(forward=False, backward=False)

    def close(self) -> None:
        self._server.close()
        assert not self._server.failures, "a bug of this proxy"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            behind_reader, behind_writer = await asyncio.open_connection(LOOPBACK, self._target_port)
            async with closing(behind_writer):
                await asyncio.gather(
                    self._carry(reader, behind_writer, self._forward),
                    self._carry(behind_reader, writer, self._backward),
                )

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, may_pass: asyncio.Event) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(CHUNK_BYTES):
                await may_pass.wait()
                sink.write(data)
                await sink.drain()
        sink.close()
