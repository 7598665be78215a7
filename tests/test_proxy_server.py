"""A proxy that is closed leaves no connection open, which would fail a later test."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket

import pytest

from tests.support.wire.proxy_server import ProxyServer

CLOSES = 30

PLENTY = bytes(4_000_000)


@pytest.mark.parametrize("written", [b"", PLENTY])
def test_connections_end_with_the_proxy(written: bytes) -> None:
    begun: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(written)  # the client does not read it
        begun.append(await reader.readexactly(1))
        await asyncio.Event().wait()

    proxy = ProxyServer(serve)
    proxy.start()
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as client:
        client.sendall(b"x")
        while not begun:
            asyncio.run(asyncio.sleep(0.001))
        proxy.close()
        with contextlib.suppress(ConnectionResetError):
            while client.recv(65536):
                pass
    assert not proxy.failures


def test_connections_that_are_being_accepted_end_with_the_proxy() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.Event().wait()

    for _ in range(CLOSES):
        proxy = ProxyServer(serve)
        proxy.start()
        with contextlib.ExitStack() as clients:
            for _ in range(20):
                clients.enter_context(socket.create_connection(("127.0.0.1", proxy.port), timeout=10))
            proxy.close()
    gc.collect()  # of a transport that is open, a warning fails this test


def test_what_was_written_arrives_before_a_connection_is_closed() -> None:
    async def serve(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(PLENTY)

    proxy = ProxyServer(serve)
    proxy.start()
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as client, client.makefile("rb") as received:
        assert received.read() == PLENTY
    proxy.close()


def test_a_bug_in_a_proxy_is_kept() -> None:
    async def serve(_: asyncio.StreamReader, __: asyncio.StreamWriter) -> None:
        raise ValueError("a bug")

    proxy = ProxyServer(serve)
    proxy.start()
    ended = contextlib.suppress(ConnectionResetError)
    with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as client, ended:
        assert client.recv(1) == b""
    proxy.close()
    assert [str(failure) for failure in proxy.failures] == ["a bug"]
