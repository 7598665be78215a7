from __future__ import annotations

from odradek.broker.network.frames.large_frame_receiver import LargeFrameReceiver


class Recorder:
    def __init__(self) -> None:
        self.space = bytearray(8)
        self.calls: list[object] = []

    def large_frame_space(self) -> memoryview:
        return memoryview(self.space)

    def large_frame_received(self, count: int) -> None:
        self.calls.append(count)

    def eof_received(self) -> bool:
        return True

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.calls.append(exc)


def test_the_loop_writes_into_the_buffer_of_the_frame_and_everything_else_goes_to_the_connection() -> None:
    recorder = Recorder()
    receiver = LargeFrameReceiver(recorder)
    receiver.get_buffer(-1)[:3] = b"abc"
    receiver.buffer_updated(3)
    receiver.pause_writing()
    receiver.resume_writing()
    assert receiver.eof_received()
    receiver.connection_lost(None)
    assert recorder.space[:3] == b"abc"
    assert recorder.calls == [3, "pause", "resume", None]
