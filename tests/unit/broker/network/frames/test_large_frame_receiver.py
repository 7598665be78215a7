from __future__ import annotations

import pytest

from odradek.broker.network.frames.chunk_receiver import ChunkReceiver
from odradek.broker.network.frames.large_frame_receiver import LargeFrameReceiver
from tests.support.in_process.connections.replaced_connection import ReplacedConnection


def test_the_loop_writes_into_the_buffer_of_the_frame() -> None:
    connection = ReplacedConnection()
    receiver = LargeFrameReceiver(connection)
    receiver.get_buffer(-1)[:3] = b"abc"
    receiver.buffer_updated(3)
    assert connection.space[:3] == b"abc"
    assert connection.calls == [3]


@pytest.mark.parametrize("is_large", [False, True])
def test_everything_else_goes_to_the_connection(is_large: bool) -> None:
    connection = ReplacedConnection()
    receiver: LargeFrameReceiver | ChunkReceiver = LargeFrameReceiver(connection)
    if not is_large:
        receiver = ChunkReceiver(connection, memoryview(bytearray(8)))
    receiver.pause_writing()
    receiver.resume_writing()
    assert receiver.eof_received()
    connection.stays_open = False
    assert not receiver.eof_received()
    receiver.connection_lost(None)
    assert connection.calls == ["pause", "resume", "end", "end", None]
