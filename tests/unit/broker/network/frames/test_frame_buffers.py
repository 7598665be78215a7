from __future__ import annotations

from odradek.broker.network.frames.frame_buffers import (
    FIRST_CAPACITY,
    GROWTH,
    MAX_KEPT_BUFFER_BYTES,
    MAX_KEPT_BYTES,
    FrameBuffers,
    grow,
)


def test_buffer_is_reused_when_it_has_no_views() -> None:
    buffers = FrameBuffers()
    buffer = buffers.take(8192)
    buffers.keep(buffer)
    assert buffers.take(8000) is buffer
    assert len(buffer) == 8192
    assert buffers.take(8000) is not buffer


def test_buffer_is_left_alone_while_any_view_of_it_exists() -> None:
    buffers = FrameBuffers()
    buffer = buffers.take(8192)
    buffer[:] = b"x" * 8192
    frame = memoryview(buffer)[:8000]
    records = frame[100:200]
    buffers.keep(buffer)
    assert buffers.take(8000) is not buffer
    del frame
    assert buffers.take(8000) is not buffer  # a slice counts as much as the whole
    del records
    assert buffers.take(8000) is buffer
    assert buffer[:] == b"x" * 8192


def test_buffer_of_the_wrong_size_is_not_taken() -> None:
    buffers = FrameBuffers()
    buffer = buffers.take(100_000)
    buffers.keep(buffer)
    assert buffers.take(100_001) is not buffer
    assert buffers.take(100_000 // GROWTH - 1) is not buffer
    assert buffers.take(100_000 // GROWTH) is buffer


def test_buffer_begins_small_and_grows_up_to_its_frame() -> None:
    buffer = FrameBuffers().take(10 * FIRST_CAPACITY)
    assert len(buffer) == FIRST_CAPACITY
    buffer[:4] = b"kept"
    grow(buffer, 10 * FIRST_CAPACITY)
    assert len(buffer) == GROWTH * FIRST_CAPACITY
    grow(buffer, 10 * FIRST_CAPACITY)
    assert len(buffer) == 10 * FIRST_CAPACITY
    assert buffer[:4] == b"kept"


def test_bytes_of_kept_buffers_are_bounded() -> None:
    buffers = FrameBuffers()
    for size in (MAX_KEPT_BUFFER_BYTES + 1, MAX_KEPT_BUFFER_BYTES):
        for _ in range(2 * MAX_KEPT_BYTES // MAX_KEPT_BUFFER_BYTES):
            buffer = buffers.take(size)
            grow(buffer, size)
            grow(buffer, size)
            with memoryview(buffer):
                buffers.keep(buffer)
    views = [memoryview(buffer) for buffer in buffers._kept]
    assert buffers._kept_bytes == sum(len(view) for view in views) <= MAX_KEPT_BYTES
