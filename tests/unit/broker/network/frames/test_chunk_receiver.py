from __future__ import annotations

from odradek.broker.network.frames.chunk_receiver import ChunkReceiver


class Recorder:
    def __init__(self) -> None:
        self.calls: list[object] = []

    def data_received(self, data: bytes) -> None:
        self.calls.append(data)

    def eof_received(self) -> bool:
        self.calls.append("end")
        return False

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.calls.append(exc)


def test_connections_share_the_buffer_and_each_keeps_what_it_got() -> None:
    shared = memoryview(bytearray(8))
    first, second = Recorder(), Recorder()
    for recorder, data in ((first, b"abcdefgh"), (second, b"xyz"), (first, b"ij")):
        receiver = ChunkReceiver(recorder, shared)
        receiver.get_buffer(-1)[: len(data)] = data
        receiver.buffer_updated(len(data))
    assert first.calls == [b"abcdefgh", b"ij"]
    assert second.calls == [b"xyz"]


def test_everything_else_goes_to_the_connection() -> None:
    recorder = Recorder()
    receiver = ChunkReceiver(recorder, memoryview(bytearray(8)))
    receiver.pause_writing()
    receiver.resume_writing()
    assert not receiver.eof_received()
    receiver.connection_lost(None)
    assert recorder.calls == ["pause", "resume", "end", None]
