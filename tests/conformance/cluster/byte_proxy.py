"""A TCP proxy that passes bytes on, and holds them back in one direction or in both.

Held bytes are not lost: they arrive when the direction is open again, like packets that TCP repeats, unless one of the
ends has closed the connection by then.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading

from tests.support.processes.ports import free_port

HOST = "127.0.0.1"
CHUNK_BYTES = 65536


class ByteProxy:
    """In front of one port; each connection to it is one to the port behind."""

    def __init__(self, target_port: int) -> None:
        self.port = free_port()
        self._target_port = target_port
        self._loop = asyncio.new_event_loop()
        self._forward = asyncio.Event()
        self._backward = asyncio.Event()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        listen = asyncio.start_server(self._serve, HOST, self.port)
        self._server = asyncio.run_coroutine_threadsafe(listen, self._loop).result()
        self.heal()

    @property
    def address(self) -> str:
        return f"{HOST}:{self.port}"

    def cut(self, *, forward: bool = True, backward: bool = True) -> None:
        """Hold back what clients send (`forward`), what they are answered (`backward`), or both."""
        for is_cut, event in ((forward, self._forward), (backward, self._backward)):
            self._loop.call_soon_threadsafe(event.clear if is_cut else event.set)

    def heal(self) -> None:
        self.cut(forward=False, backward=False)

    def close(self) -> None:
        async def end() -> None:
            self._server.close()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            behind_reader, behind_writer = await asyncio.open_connection(HOST, self._target_port)
        except OSError:
            writer.close()
            return
        await asyncio.gather(
            self._carry(reader, behind_writer, self._forward), self._carry(behind_reader, writer, self._backward)
        )

    async def _carry(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, may_pass: asyncio.Event) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(CHUNK_BYTES):
                await may_pass.wait()
                sink.write(data)
                await sink.drain()
        sink.close()
