from __future__ import annotations

import gzip
import resource
import struct
from contextlib import suppress

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.protocol.records import compression
from odradek.protocol.records.compression import CompressionType, compress, decompress
from odradek.protocol.records.errors import (
    CorruptRecordError,
    DecompressedSizeError,
    DecompressionError,
    UnsupportedCompressionTypeError,
)
from tests.support.wire.bombs import BOMBS, ZEROS

CODECS = [CompressionType.GZIP, CompressionType.SNAPPY, CompressionType.LZ4, CompressionType.ZSTD]
LIMIT = 1024 * 1024
payloads = st.binary(max_size=300) | st.tuples(st.binary(max_size=50), st.integers(1, 5000)).map(lambda p: p[0] * p[1])


@pytest.mark.parametrize("codec", CompressionType)
@given(data=payloads)
def test_round_trip(codec: CompressionType, data: bytes) -> None:
    assert decompress(codec, compress(codec, data)) == data


@pytest.mark.parametrize(
    ("codec", "level"),
    [
        (CompressionType.GZIP, 1),
        (CompressionType.GZIP, 9),
        (CompressionType.LZ4, 1),
        (CompressionType.LZ4, 17),
        (CompressionType.ZSTD, -5),
        (CompressionType.ZSTD, 19),
    ],
)
def test_levels(codec: CompressionType, level: int) -> None:
    data = b"some text, again and again " * 3000
    assert decompress(codec, compress(codec, data, level)) == data


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("size", [1, 1000, 70_000, 300_000])
def test_the_limit_holds_on_both_sides(codec: CompressionType, size: int) -> None:
    data = bytes(n * n % 251 for n in range(size))
    packed = compress(codec, data)
    assert decompress(codec, packed, size) == data
    with pytest.raises(DecompressedSizeError):
        decompress(codec, packed, size - 1)


@pytest.mark.parametrize("codec", CODECS)
@given(data=st.binary(max_size=300))
def test_random_bytes_are_refused_or_opened(codec: CompressionType, data: bytes) -> None:
    with suppress(CorruptRecordError):
        decompress(codec, data, LIMIT)


@pytest.mark.parametrize("codec", CODECS)
@given(data=payloads.filter(bool), at=st.floats(0, 1, exclude_max=True), flip=st.integers(1, 255))
def test_damaged_streams_are_refused_or_opened(codec: CompressionType, data: bytes, at: float, flip: int) -> None:
    packed = bytearray(compress(codec, data))
    packed[int(at * len(packed))] ^= flip
    with suppress(CorruptRecordError):
        decompress(codec, packed, LIMIT)


@pytest.mark.parametrize("codec", CODECS)
def test_every_truncation_is_refused_or_shorter(codec: CompressionType) -> None:
    data = bytes(n * n % 251 for n in range(1000))
    packed = compress(codec, data)
    for size in range(len(packed)):
        try:
            opened = decompress(codec, packed[:size])
        except DecompressionError:
            continue
        # snappy's framing has no end mark, hence a stream cut between blocks is a shorter stream
        assert codec == CompressionType.SNAPPY
        assert data.startswith(opened)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codecs_are_named(codec: int) -> None:
    with pytest.raises(DecompressionError, match=f"Unknown compression type id: {codec}"):
        decompress(codec, b"")
    with pytest.raises(DecompressionError, match=f"Unknown compression type id: {codec}"):
        compress(codec, b"")


def test_zstd_came_with_magic_2() -> None:
    with pytest.raises(UnsupportedCompressionTypeError):
        compress(CompressionType.ZSTD, b"", magic=1)
    with pytest.raises(DecompressionError):
        decompress(CompressionType.ZSTD, compress(CompressionType.ZSTD, b"x"), magic=1)


def test_names_are_those_of_the_configuration() -> None:
    assert [codec.name.lower() for codec in CompressionType] == ["none", "gzip", "snappy", "lz4", "zstd"]


# Bombs


@pytest.mark.parametrize("name", BOMBS)
def test_bombs_are_refused_within_bounded_memory(name: str) -> None:
    codec, build = BOMBS[name]
    bomb = build()
    decompress(codec, compress(codec, ZEROS))  # what loading the codec costs is not the bomb's
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(DecompressedSizeError):
        decompress(codec, bomb, 16 * LIMIT)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before <= 48 * 1024


# gzip


@pytest.mark.parametrize("level", [None, *range(1, 10)])
def test_the_gzip_header_is_that_of_java(level: int | None) -> None:
    packed = compress(CompressionType.GZIP, b"some text", level)
    assert packed[:10] == bytes((0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 0xFF))


def test_gzip_members_follow_each_other() -> None:
    assert decompress(CompressionType.GZIP, gzip.compress(b"one ") + gzip.compress(b"two")) == b"one two"


def test_gzip_limit_counts_all_members() -> None:
    with pytest.raises(DecompressedSizeError):
        decompress(CompressionType.GZIP, gzip.compress(b"one ") + gzip.compress(b"two"), 6)


@pytest.mark.parametrize("size", [0, 1, LIMIT - 1, LIMIT, LIMIT + 1, 2 * LIMIT])
def test_gzip_is_opened_in_pieces(size: int) -> None:
    packed = gzip.compress(bytes(size), 1)
    assert decompress(CompressionType.GZIP, packed, size) == bytes(size)


@pytest.mark.parametrize("rest", [b"rest", bytes(20), gzip.compress(b"", mtime=0)[:9]])
def test_gzip_ignores_other_bytes_behind_the_last_member(rest: bytes) -> None:
    assert decompress(CompressionType.GZIP, gzip.compress(b"one") + rest) == b"one"


def test_gzip_members_are_limited() -> None:
    member = gzip.compress(b"")
    assert decompress(CompressionType.GZIP, member * compression.MAX_GZIP_MEMBERS) == b""
    with pytest.raises(DecompressionError, match="members"):
        decompress(CompressionType.GZIP, member * (compression.MAX_GZIP_MEMBERS + 1))


# snappy


def test_snappy_header_is_xerials() -> None:
    assert compress(CompressionType.SNAPPY, b"") == bytes.fromhex("82534e4150505900 00000001 00000001")


def test_snappy_raw_block_without_framing() -> None:
    raw = bytes(cramjam.snappy.compress_raw(b"raw " * 100))
    assert decompress(CompressionType.SNAPPY, raw) == b"raw " * 100


def test_snappy_streams_follow_each_other() -> None:
    one, two = compress(CompressionType.SNAPPY, b"one "), compress(CompressionType.SNAPPY, b"two")
    assert decompress(CompressionType.SNAPPY, one + two) == b"one two"


def test_snappy_ends_at_bytes_that_only_resemble_a_header() -> None:
    assert (
        decompress(CompressionType.SNAPPY, compress(CompressionType.SNAPPY, b"one") + b"\x82SNAPPZ\x00" + bytes(8))
        == b"one"
    )


def test_snappy_empty_input_is_no_stream() -> None:
    with pytest.raises(DecompressionError, match="empty"):
        decompress(CompressionType.SNAPPY, b"")


@pytest.mark.parametrize(
    "tail",
    [struct.pack(">i", -1), struct.pack(">i", 100) + b"short", b"\x82SNAPPY\x00" + bytes(7)],
    ids=["negative size", "size beyond the end", "truncated header"],
)
def test_snappy_framing_is_checked(tail: bytes) -> None:
    with pytest.raises(DecompressionError):
        decompress(CompressionType.SNAPPY, compress(CompressionType.SNAPPY, b"one") + tail)


def test_snappy_block_with_a_false_size_allocates_nothing() -> None:
    with pytest.raises(DecompressionError, match="cannot become"):
        decompress(CompressionType.SNAPPY, b"\xff\xff\xff\x07" + b"\x00" * 10, 2**40)


@pytest.mark.parametrize("declared", [1, 7, 9])
def test_snappy_block_that_declares_another_size_is_refused(declared: int) -> None:
    block = bytearray(cramjam.snappy.compress_raw(b"12345678"))
    block[0] = declared
    with pytest.raises(DecompressionError):
        decompress(CompressionType.SNAPPY, block)


# zstd


def test_zstd_content_checksum_is_verified() -> None:
    block = b"\x19\x00\x00abc"
    with pytest.raises(DecompressionError, match="checksum"):
        decompress(CompressionType.ZSTD, bytes.fromhex("28b52ffd 04 58") + block + bytes(4))


def test_zstd_frames_follow_each_other_and_skippable_ones_are_skipped() -> None:
    one, two = (bytes(cramjam.zstd.compress(text)) for text in (b"one ", b"two"))
    skippable = struct.pack("<II", 0x184D2A53, 5) + b"12345"
    assert decompress(CompressionType.ZSTD, one + skippable + two) == b"one two"


def test_zstd_many_tiny_blocks_do_not_cost_a_walk_each() -> None:
    empty_block = b"\x00\x00\x00"
    frame = bytes.fromhex("28b52ffd 00 58") + empty_block * 100_000 + b"\x01\x00\x00"
    assert decompress(CompressionType.ZSTD, frame, LIMIT) == b""


def test_zstd_stream_without_content_size() -> None:
    packer = cramjam.zstd.Compressor(level=3)
    packer.compress(b"some text " * 50_000)
    assert decompress(CompressionType.ZSTD, bytes(packer.finish())) == b"some text " * 50_000


@pytest.mark.parametrize("window", ["88", "f8"], ids=["128 MiB", "2 TiB"])
def test_zstd_window_sizes_reserve_no_memory(window: str) -> None:
    """A frame may ask for a window far beyond its content."""
    frame = bytes.fromhex("28b52ffd 00") + bytes.fromhex(window) + b"\x19\x00\x00abc"
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with suppress(DecompressionError):
        assert decompress(CompressionType.ZSTD, frame, LIMIT) == b"abc"
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before <= 8 * 1024
