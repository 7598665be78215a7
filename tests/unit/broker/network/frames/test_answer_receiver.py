from __future__ import annotations

import asyncio
from typing import cast

import pytest

from odradek.broker.network.frames.answer_receiver import RECEIVE_BYTES, AnswerReceiver
from odradek.broker.network.frames.frame_buffers import FrameBuffers
from odradek.protocol.framing import frame_prefix
from tests.support.async_test import async_test

MAX_FRAME_BYTES = 1_000_000


class Transport:
    def __init__(self) -> None:
        self.written = b""
        self.is_aborted = False

    def write(self, data: bytes) -> None:
        self.written += data

    def abort(self) -> None:
        self.is_aborted = True


def connected() -> tuple[AnswerReceiver, Transport]:
    receiver, transport = AnswerReceiver(MAX_FRAME_BYTES, FrameBuffers()), Transport()
    receiver.connection_made(cast("asyncio.Transport", transport))
    return receiver, transport


def receive(receiver: AnswerReceiver, data: bytes) -> None:
    """As the event loop does it."""
    while data:
        space = receiver.get_buffer(-1)
        count = min(len(space), len(data))
        space[:count] = data[:count]
        receiver.buffer_updated(count)
        data = data[count:]


async def asked(receiver: AnswerReceiver) -> asyncio.Task[memoryview]:
    task = asyncio.ensure_future(receiver.exchange(b"request"))
    await asyncio.sleep(0)
    return task


@async_test
async def test_a_request_goes_out_as_a_frame_and_the_frame_that_comes_answers_it() -> None:
    receiver, transport = connected()
    task = await asked(receiver)
    assert transport.written == b"\0\0\0\x07request"
    receive(receiver, b"\0\0")
    receive(receiver, b"\0\x06ans")
    assert not task.done()
    receive(receiver, b"wer")
    assert bytes(await task) == b"answer"


@async_test
async def test_a_large_answer_comes_straight_into_the_buffer_it_is_handed_over_in() -> None:
    receiver, _ = connected()
    task = await asked(receiver)
    answer = bytes(range(256)) * 3_000
    receive(receiver, frame_prefix(len(answer)) + answer[:RECEIVE_BYTES])
    space = receiver.get_buffer(-1)
    assert len(space) > RECEIVE_BYTES
    receive(receiver, answer[RECEIVE_BYTES:])
    frame = await task
    assert frame == answer


@pytest.mark.parametrize("size", [MAX_FRAME_BYTES + 1, 0x7FFFFFFF])
@async_test
async def test_an_answer_that_is_too_large_ends_the_connection(size: int) -> None:
    receiver, transport = connected()
    task = await asked(receiver)
    receive(receiver, frame_prefix(size))
    with pytest.raises(ConnectionAbortedError, match=f"size = {size} larger than {MAX_FRAME_BYTES}"):
        await task
    assert transport.is_aborted
    assert not receiver.is_open


@async_test
async def test_an_answer_may_be_as_large_as_the_limit() -> None:
    receiver, _ = connected()
    task = await asked(receiver)
    receive(receiver, frame_prefix(MAX_FRAME_BYTES) + bytes(MAX_FRAME_BYTES))
    assert len(await task) == MAX_FRAME_BYTES


@async_test
async def test_bytes_that_no_request_waits_for_end_the_connection() -> None:
    receiver, transport = connected()
    receive(receiver, b"\0")
    assert transport.is_aborted
    assert not receiver.is_open
    with pytest.raises(ConnectionResetError):
        await receiver.exchange(b"request")


@async_test
async def test_a_waiting_request_raises_at_the_end_of_the_connection() -> None:
    receiver, _ = connected()
    task = await asked(receiver)
    receiver.eof_received()
    receiver.connection_lost(None)
    with pytest.raises(ConnectionResetError, match="closed the connection"):
        await task


@async_test
async def test_a_waiting_request_raises_at_an_error_of_the_connection() -> None:
    receiver, _ = connected()
    task = await asked(receiver)
    receiver.connection_lost(BrokenPipeError("broken"))
    with pytest.raises(ConnectionResetError, match="broken"):
        await task
    assert not receiver.is_open
