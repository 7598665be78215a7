"""A connection that a buffered receiver has replaced: it records what reaches it."""

from __future__ import annotations


class ReplacedConnection:
    """Implements `Chunks` and `LargeFrames`. `calls`: the data, the count of bytes, or the name of each call."""

    def __init__(self) -> None:
        self.space = bytearray(8)
        self.calls: list[object] = []
        self.stays_open = True

    def data_received(self, data: bytes) -> None:
        self.calls.append(data)

    def large_frame_space(self) -> memoryview:
        return memoryview(self.space)

    def large_frame_received(self, count: int) -> None:
        self.calls.append(count)

    def eof_received(self) -> bool:
        self.calls.append("end")
        return self.stays_open

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.calls.append(exc)
