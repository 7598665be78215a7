from __future__ import annotations

import pytest

from odradek.protocol.codec.codec import DecodeError, EncodeError
from odradek.protocol.framing import FrameSizeError, frame, frame_prefix, read_frame_size

MAX_SIZE = 100


class Region:
    """Stands for a piece of a file."""

    def __init__(self, size: int) -> None:
        self.size_in_bytes = size


@pytest.mark.parametrize("size", [0, 1, MAX_SIZE])
def test_reads_a_size_up_to_the_limit(size: int) -> None:
    assert read_frame_size(b"??" + size.to_bytes(4, "big"), MAX_SIZE, 2) == size


@pytest.mark.parametrize("there", [b"", b"\0\0\0"])
def test_an_incomplete_size_is_none(there: bytes) -> None:
    assert read_frame_size(there, MAX_SIZE) is None


def test_refuses_a_size_over_the_limit() -> None:
    with pytest.raises(FrameSizeError, match=r"Invalid receive \(size = 101 larger than 100\)"):
        read_frame_size((MAX_SIZE + 1).to_bytes(4, "big"), MAX_SIZE)


def test_refuses_a_negative_size() -> None:
    with pytest.raises(DecodeError, match=r"Invalid receive \(size = -1\)"):
        read_frame_size(b"\xff\xff\xff\xff", MAX_SIZE)


def test_frames_bytes_in_one_part() -> None:
    assert frame([b"abc"]) == [b"\0\0\0\x03abc"]


def test_frames_parts_by_the_sum_of_their_sizes() -> None:
    region, view = Region(1000), memoryview(b"12345")
    assert frame([b"ab", region, view, b"c"]) == [b"\0\0\x03\xf0ab", region, view, b"c"]


def test_frames_parts_that_do_not_begin_with_bytes() -> None:
    region = Region(7)
    assert frame([region]) == [b"\0\0\0\x07", region]
    assert frame([]) == [b"\0\0\0\0"]


@pytest.mark.parametrize("size", [-1, 1 << 31])
def test_refuses_a_frame_that_cannot_be_sent(size: int) -> None:
    with pytest.raises(EncodeError):
        frame_prefix(size)
