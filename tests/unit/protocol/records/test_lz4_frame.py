from __future__ import annotations

import struct

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.records import lz4_frame
from odradek.protocol.records.errors import DecompressedSizeError, DecompressionError

TEXT = b"some text, again and again " * 10_000
END_MARK = bytes(4)


def decompress(data: bytes, max_size: int = 1 << 20) -> bytes:
    return lz4_frame.decompress(memoryview(data), max_size)


def native(data: bytes, **options: bool) -> bytes:
    packer = cramjam.lz4.Compressor(level=1, **options)
    packer.compress(data)
    return bytes(packer.finish())


def test_header_is_kafkas() -> None:
    assert lz4_frame.compress(b"", None) == bytes.fromhex("04224d18 60 40 82 00000000")


def test_header_checksum_of_magic_0_covers_the_magic_too() -> None:
    frame = lz4_frame.compress(b"x", None, broken_header_checksum=True)
    assert frame[:7] == bytes.fromhex("04224d18 60 40 1a")
    assert lz4_frame.decompress(memoryview(frame), 10, check_header=False) == b"x"
    with pytest.raises(DecompressionError, match="checksum"):
        decompress(frame)


@given(st.binary(max_size=1000))
def test_native_reader_takes_our_frames(data: bytes) -> None:
    assert bytes(cramjam.lz4.decompress(lz4_frame.compress(data * 200, None))) == data * 200


@pytest.mark.parametrize("content_checksum", [True, False])
def test_native_frames_are_read(content_checksum: bool) -> None:
    assert decompress(native(TEXT, content_checksum=content_checksum, block_linked=False)) == TEXT


def test_dependent_blocks_are_refused_as_kafka_does() -> None:
    with pytest.raises(DecompressionError, match="dependent"):
        decompress(native(TEXT, block_linked=True))


def test_incompressible_blocks_are_stored() -> None:
    data = bytes((n * n * 7919 ^ n >> 3) & 0xFF for n in range(1000))
    frame = lz4_frame.compress(data, None)
    if len(frame) == 7 + 4 + len(data) + 4:
        assert struct.unpack_from("<I", frame, 7)[0] == len(data) | 0x80000000
    assert decompress(frame) == data
    stored = lz4_frame.compress(b"", None)[:7] + struct.pack("<I", 3 | 0x80000000) + b"abc" + END_MARK
    assert decompress(stored) == b"abc"
    with pytest.raises(DecompressedSizeError):
        decompress(stored, 2)


def test_content_size_in_the_header_is_skipped() -> None:
    descriptor = b"\x68\x40" + struct.pack("<Q", 3)
    checksum = bytes((lz4_frame._xxh32_small(descriptor) >> 8 & 0xFF,))
    frame = b"\x04\x22\x4d\x18" + descriptor + checksum + struct.pack("<I", 3 | 0x80000000) + b"abc" + END_MARK
    assert decompress(frame) == b"abc"


def with_block_checksum(block: bytes, checksum: int) -> bytes:
    descriptor = b"\x70\x40"
    header = b"\x04\x22\x4d\x18" + descriptor + bytes((lz4_frame._xxh32_small(descriptor) >> 8 & 0xFF,))
    return header + struct.pack("<I", len(block) | 0x80000000) + block + struct.pack("<I", checksum) + END_MARK


def test_block_checksums_are_verified() -> None:
    good = lz4_frame._xxh32_small(b"abc")
    assert decompress(with_block_checksum(b"abc", good)) == b"abc"
    with pytest.raises(DecompressionError):
        decompress(with_block_checksum(b"abc", good ^ 1))
    with pytest.raises(DecompressedSizeError):
        decompress(with_block_checksum(b"abc", good), 2)


@pytest.mark.parametrize(
    ("data", "digest"), [(b"", 0x02CC5D05), (b"a", 0x550D7456), (b"abc", 0x32D153FF), (b"0123456789", 0x950C9C0A)]
)
def test_xxh32_of_short_inputs(data: bytes, digest: int) -> None:
    assert lz4_frame._xxh32_small(data) == digest


@pytest.mark.parametrize(
    ("position", "value", "message"),
    [
        (0, 0x05, "not a frame"),
        (4, 0xA0, "flags"),
        (4, 0x61, "flags"),
        (5, 0x30, "block descriptor"),
        (5, 0xC0, "block descriptor"),
        (6, 0x00, "checksum"),
    ],
)
def test_header_fields_are_checked(position: int, value: int, message: str) -> None:
    frame = bytearray(lz4_frame.compress(b"x", None))
    frame[position] = value
    with pytest.raises(DecompressionError, match=message):
        decompress(bytes(frame))


def test_block_beyond_the_maximum_is_refused() -> None:
    frame = lz4_frame.compress(b"", None)[:7] + struct.pack("<I", 65537) + bytes(65537) + END_MARK
    with pytest.raises(DecompressionError, match="exceeds"):
        decompress(frame)


def test_bytes_behind_the_end_mark_are_ignored() -> None:
    assert decompress(lz4_frame.compress(b"x", None) + b"rest") == b"x"


def test_stored_block_behind_a_packed_one_is_limited() -> None:
    packed = lz4_frame.compress(bytes(60_000), None)[:-4]
    frame = packed + struct.pack("<I", 10 | 0x80000000) + b"0123456789" + END_MARK
    assert decompress(frame, 60_010) == bytes(60_000) + b"0123456789"
    with pytest.raises(DecompressedSizeError):
        decompress(frame, 60_009)


def test_content_checksum_must_be_there() -> None:
    frame = native(TEXT, content_checksum=True, block_linked=False)
    with pytest.raises(DecompressionError, match="prematurely"):
        decompress(frame[:-1])
