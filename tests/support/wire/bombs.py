"""Compressed bytes that become more than 100 MB: a thousandfold of themselves, or the most that their codec can."""

from __future__ import annotations

import gzip
import struct
import zlib
from typing import Final

import cramjam

from odradek.protocol.records.compression import CompressionType, compress

ZEROS: Final = bytes(64 * 1024)


def gzip_bomb() -> bytes:
    deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
    segment = deflate.compress(ZEROS) + deflate.flush(zlib.Z_FULL_FLUSH)
    return gzip.compress(b"", mtime=0)[:10] + segment * 2000


def snappy_bomb() -> bytes:
    block = bytes(cramjam.snappy.compress_raw(ZEROS))
    return compress(CompressionType.SNAPPY, b"") + (struct.pack(">i", len(block)) + block) * 2000


def lz4_bomb() -> bytes:
    block = bytes(cramjam.lz4.compress_block(ZEROS, store_size=False))
    return compress(CompressionType.LZ4, b"")[:7] + (struct.pack("<I", len(block)) + block) * 2000 + bytes(4)


def zstd_bomb() -> bytes:
    """A frame without a content size, of blocks that repeat one byte 131072 times in four."""
    run = (128 * 1024 << 3 | 1 << 1).to_bytes(3, "little") + b"\x00"
    return bytes.fromhex("28b52ffd 00 58") + run * 1000 + b"\x01\x00\x00"


def zstd_bomb_in_compressed_blocks() -> bytes:
    """As a compressor writes it, whose size only decompression tells."""
    packed = bytes(cramjam.zstd.compress(bytes(4 * 1024 * 1024)))
    return packed * 30


BOMBS = {
    "gzip": (CompressionType.GZIP, gzip_bomb),
    "snappy": (CompressionType.SNAPPY, snappy_bomb),
    "lz4": (CompressionType.LZ4, lz4_bomb),
    "zstd": (CompressionType.ZSTD, zstd_bomb),
    "zstd compressed": (CompressionType.ZSTD, zstd_bomb_in_compressed_blocks),
}
