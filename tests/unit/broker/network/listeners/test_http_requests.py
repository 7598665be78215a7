from __future__ import annotations

import asyncio
from http import HTTPStatus

import pytest

from odradek.broker.machine.startup_error import StartupError
from odradek.broker.network.listeners.http_requests import (
    MAX_HEAD_BYTES,
    Head,
    end_response,
    http_server,
    listen,
    read_head,
)
from tests.support.async_test import async_test

END = b"\r\n\r\n"


async def _read(sent: bytes) -> Head | HTTPStatus:
    reader = asyncio.StreamReader(limit=MAX_HEAD_BYTES)
    reader.feed_data(sent)
    reader.feed_eof()
    return await read_head(reader)


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"GET /metrics?name=x HTTP/1.1" + END, Head("GET", "/metrics", [])),
        (
            b"PUT / HTTP/1.0\r\nHost: a:1\r\nX:\r\nhost:b" + END,
            Head("PUT", "/", [("host", "a:1"), ("x", ""), ("host", "b")]),
        ),
        (b"GET / HTTP/2" + END, HTTPStatus.BAD_REQUEST),
        (b"GET /" + END, HTTPStatus.BAD_REQUEST),
        (b"\xff\xfe " + END, HTTPStatus.BAD_REQUEST),
        (
            b"GET /" + b"x" * (MAX_HEAD_BYTES - 14) + b" HTTP/1.1" + END,
            Head("GET", "/" + "x" * (MAX_HEAD_BYTES - 14), []),
        ),
        (b"GET /" + b"x" * (MAX_HEAD_BYTES - 13) + b" HTTP/1.1" + END, HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE),
    ],
    ids=lambda value: str(value)[:30],
)
def test_heads(sent: bytes, expected: Head | HTTPStatus) -> None:
    assert asyncio.run(_read(sent)) == expected


def test_a_head_that_is_not_whole_has_no_answer() -> None:
    with pytest.raises(asyncio.IncompleteReadError):
        asyncio.run(_read(b"GET / HTTP/1.1\r\n"))


@async_test
async def test_a_client_that_sends_more_than_is_read_gets_the_whole_response() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        writer.write(bytes(4 << 20))
        await end_response(reader, writer)

    server = http_server(serve)
    port = await listen(server, "an.option", "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(bytes(1 << 20))
    assert len(await reader.read()) == 4 << 20
    writer.close()
    await server.close()


@async_test
async def test_a_client_that_ends_its_side_gets_the_whole_response() -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.write(bytes(4 << 20))
        await end_response(reader, writer)

    server = http_server(serve)
    port = await listen(server, "an.option", "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write_eof()
    assert len(await reader.read()) == 4 << 20
    writer.close()
    await server.close()


@async_test
async def test_a_port_in_use_is_named_with_its_option() -> None:
    taken = http_server(_nothing)
    port = await listen(taken, "an.option", "127.0.0.1", 0)
    with pytest.raises(StartupError, match=rf"Cannot listen on an\.option 127\.0\.0\.1:{port}: "):
        await listen(http_server(_nothing), "an.option", "127.0.0.1", port)
    await taken.close()


async def _nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    pass
