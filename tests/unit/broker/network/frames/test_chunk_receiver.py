from __future__ import annotations

from odradek.broker.network.frames.chunk_receiver import ChunkReceiver
from tests.support.in_process.connections.replaced_connection import ReplacedConnection


def test_connections_share_the_buffer_and_each_keeps_what_it_got() -> None:
    shared = memoryview(bytearray(8))
    first, second = ReplacedConnection(), ReplacedConnection()
    for connection, data in ((first, b"abcdefgh"), (second, b"xyz"), (first, b"ij")):
        receiver = ChunkReceiver(connection, shared)
        receiver.get_buffer(-1)[: len(data)] = data
        receiver.buffer_updated(len(data))
    assert first.calls == [b"abcdefgh", b"ij"]
    assert second.calls == [b"xyz"]
