from __future__ import annotations

from odradek.broker.network.frame_buffers import MAX_BUFFER_BYTES, MAX_POOLED_BYTES, FrameBuffers


def test_buffer_is_used_again_when_nobody_refers_to_it() -> None:
    buffers = FrameBuffers()
    buffer = bytearray(1000)
    buffers.keep(buffer)
    assert buffers.take(900) is buffer
    assert len(buffer) == 1000
    assert buffers.take(900) is None


def test_buffer_is_left_alone_while_any_view_of_it_exists() -> None:
    buffers = FrameBuffers()
    buffer = bytearray(b"x" * 1000)
    frame = memoryview(buffer)[:900]
    records = frame[100:200]
    buffers.keep(buffer)
    assert buffers.take(900) is None
    del frame
    assert buffers.take(900) is None  # a slice counts as much as the whole
    del records
    assert buffers.take(900) is buffer
    assert buffer == b"x" * 1000


def test_buffer_of_the_wrong_size_is_not_taken() -> None:
    buffers = FrameBuffers()
    buffers.keep(bytearray(1000))
    assert buffers.take(1001) is None
    assert buffers.take(10) is None  # a hundred times too large
    assert buffers.take(1000) is not None


def test_what_is_kept_is_bounded() -> None:
    buffers = FrameBuffers()
    buffers.keep(bytearray(MAX_BUFFER_BYTES + 1))
    assert buffers.take(MAX_BUFFER_BYTES + 1) is None
    for _ in range(2 * MAX_POOLED_BYTES // MAX_BUFFER_BYTES):
        buffers.keep(bytearray(MAX_BUFFER_BYTES))
    assert buffers._bytes == MAX_POOLED_BYTES
    assert len(buffers._buffers) == MAX_POOLED_BYTES // MAX_BUFFER_BYTES
