from __future__ import annotations

import struct
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.broker.network.frames.frame_assembler import DIRECT_RECEIVE_BYTES, FrameAssembler, FrameSizeError


def framed(*bodies: bytes) -> bytes:
    return b"".join(struct.pack(">i", len(body)) + body for body in bodies)


def frames_of(assembler: FrameAssembler) -> list[bytes]:
    found = []
    while (frame := assembler.next_frame()) is not None:
        found.append(bytes(frame))
    return found


def test_frames_of_one_chunk_come_out_in_order() -> None:
    assembler = FrameAssembler(100)
    assembler.feed(framed(b"one", b"", b"three"))
    assert frames_of(assembler) == [b"one", b"", b"three"]
    assert assembler.buffered == 0


def test_frame_in_one_chunk_is_a_view_of_the_chunk() -> None:
    assembler = FrameAssembler(100)
    chunk = framed(b"payload", b"next")
    assembler.feed(chunk)
    frame = assembler.next_frame()
    assert frame is not None
    assert frame.obj is chunk
    assert frame.readonly


@given(st.lists(st.binary(max_size=300), max_size=8), st.data())
def test_any_cut_of_the_stream_gives_the_same_frames(bodies: list[bytes], data: st.DataObject) -> None:
    stream = framed(*bodies)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=12)))
    assembler = FrameAssembler(1000)
    found = []
    eager = data.draw(st.booleans())
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        if start < end:
            assembler.feed(stream[start:end])
        if eager:
            found += frames_of(assembler)
    assert found + frames_of(assembler) == bodies
    assert assembler.buffered == 0


def test_frames_are_not_overwritten_by_later_bytes() -> None:
    assembler = FrameAssembler(10_000)
    stream = framed(b"a" * 5000, b"b" * 5000, b"c" * 10)
    frames = []
    for start in range(0, len(stream), 999):
        assembler.feed(stream[start : start + 999])
        while (frame := assembler.next_frame()) is not None:
            frames.append(frame)
    assert [bytes(frame) for frame in frames] == [b"a" * 5000, b"b" * 5000, b"c" * 10]


def test_largest_allowed_frame_is_taken_and_one_byte_more_is_refused() -> None:
    assembler = FrameAssembler(10)
    assembler.feed(framed(b"x" * 10))
    assert frames_of(assembler) == [b"x" * 10]
    assembler.feed(framed(b"x" * 11))
    with pytest.raises(FrameSizeError, match=r"Invalid receive \(size = 11 larger than 10\)"):
        assembler.next_frame()


@pytest.mark.parametrize("size", [-1, -(2**31), 2**31 - 1])
def test_impossible_size_is_refused_before_anything_else_arrives(size: int) -> None:
    for cut in range(1, 5):
        assembler = FrameAssembler(1000)
        head = struct.pack(">i", size)
        assembler.feed(head[:cut])
        if cut < 4:
            assert assembler.next_frame() is None
            assembler.feed(head[cut:])
        with pytest.raises(FrameSizeError):
            assembler.next_frame()
        assert assembler.leading_bytes() == head


def test_announced_size_allocates_nothing() -> None:
    tracemalloc.start()
    try:
        assembler = FrameAssembler(2**31 - 1)
        assembler.feed(struct.pack(">i", 100_000_000) + b"x" * 100)
        assert assembler.next_frame() is None
        assert tracemalloc.get_traced_memory()[1] < 50_000
    finally:
        tracemalloc.stop()


def test_buffer_grows_with_what_arrives() -> None:
    assembler = FrameAssembler(2**31 - 1)
    assembler.feed(struct.pack(">i", 50_000_000))
    tracemalloc.start()
    try:
        for _ in range(20):
            assembler.feed(b"x" * 10_000)
            assert assembler.next_frame() is None
        assert tracemalloc.get_traced_memory()[1] < 200_000 * 9
    finally:
        tracemalloc.stop()


def test_large_frame_is_received_directly_into_its_buffer() -> None:
    body = bytes(range(256)) * 1024
    stream = framed(body, b"next")
    assembler = FrameAssembler(10**6)
    assembler.feed(stream[:1000])
    assert assembler.next_frame() is None
    assert assembler.wants_direct_receive
    position = 1000
    while (frame := assembler.finish_direct_receive()) is None:
        space = assembler.free_space()
        count = min(len(space), 50_000)
        space[:count] = stream[position : position + count]
        space.release()
        assembler.received(count)
        position += count
    assert frame == body
    assert assembler.buffered == 0
    assembler.feed(stream[position:])
    assert frames_of(assembler) == [b"next"]


def test_direct_receive_never_reaches_into_the_next_frame() -> None:
    assembler = FrameAssembler(10**6)
    assembler.feed(framed(b"x" * 200_000)[:10])
    assert assembler.next_frame() is None
    received = 6
    while assembler.finish_direct_receive() is None:
        with assembler.free_space() as space:
            count = len(space)
        received += count
        assembler.received(count)
    assert received == 200_000


def test_small_remainder_is_not_worth_a_direct_receive() -> None:
    assembler = FrameAssembler(10**6)
    size = DIRECT_RECEIVE_BYTES + 100
    assembler.feed(framed(b"x" * size)[: 4 + 101])
    assert assembler.next_frame() is None
    assert not assembler.wants_direct_receive
    assembler = FrameAssembler(10**6)
    assembler.feed(framed(b"x" * size)[: 4 + 100])
    assert assembler.next_frame() is None
    assert assembler.wants_direct_receive


def test_idle_assembler_keeps_no_chunk() -> None:
    assembler = FrameAssembler(100)
    assembler.feed(framed(b"x" * 50))
    frames_of(assembler)
    assert assembler._chunk == b""
    assert not assembler._next_chunks


def test_large_frame_is_not_overwritten_while_a_view_of_it_exists() -> None:
    assembler = FrameAssembler(10**6)
    first, second, third = (bytes([number]) * 200_000 for number in (1, 2, 3))
    frames = []
    for body in (first, second):
        stream = framed(body)
        assembler.feed(stream[:100_000])
        assert assembler.next_frame() is None
        assembler.feed(stream[100_000:])
        frames.append(assembler.next_frame())
    assert frames == [first, second]
    buffer = frames[0].obj  # type: ignore[union-attr]
    frames.pop(0)
    stream = framed(third)
    assembler.feed(stream[:100_000])
    assert assembler.next_frame() is None
    assembler.feed(stream[100_000:])
    frame = assembler.next_frame()
    assert frame == third
    assert frame.obj is buffer
    assert frames == [second]
