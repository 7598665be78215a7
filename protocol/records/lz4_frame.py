"""LZ4 frames as Kafka writes and reads them: independent blocks of at most 64 KiB (written) or 4 MiB (read).

The frame is parsed here, and only its blocks go to the codec: so each block is bounded before it is opened, dependent
blocks are refused as Kafka refuses them, and the wrong header checksum of magic 0 (KAFKA-3160: it covers the frame's
magic too) is written and accepted. Compressing block by block is also six times faster than cramjam's own frame writer.

Kafka: Lz4BlockOutputStream and Lz4BlockInputStream.
"""

from __future__ import annotations

from struct import Struct
from struct import error as StructError
from typing import Final

from odradek.protocol.records.errors import DecompressedSizeError, DecompressionError

BLOCK_SIZE: Final = 64 * 1024
DEFAULT_LEVEL: Final = 9
"""Kafka's default level means the fast compressor; any other its high-compression mode (KIP-390)."""

_MAGIC: Final = b"\x04\x22\x4d\x18"
_FLG_KAFKA: Final = 0x60  # version 1, independent blocks, no checksums
_FLG_CONTENT_CHECKSUM: Final = 0x04
_FLG_CONTENT_SIZE: Final = 0x08
_FLG_BLOCK_CHECKSUM: Final = 0x10
_BD_64_KIB: Final = 0x40
_UNCOMPRESSED: Final = 0x80000000
_MAX_RATIO: Final = 255
_UINT_LE: Final = Struct("<I")


def compress(data: bytes | bytearray | memoryview, level: int | None, *, broken_header_checksum: bool = False) -> bytes:
    """One frame. Blocks that do not shrink are stored."""
    from cramjam import lz4

    descriptor = bytes((_FLG_KAFKA, _BD_64_KIB))
    checked = _MAGIC + descriptor if broken_header_checksum else descriptor
    parts = [_MAGIC, descriptor, bytes((_xxh32_small(checked) >> 8 & 0xFF,))]
    view = memoryview(data)
    for start in range(0, len(view), BLOCK_SIZE):
        block = view[start : start + BLOCK_SIZE]
        if level is None or level == DEFAULT_LEVEL:
            packed = bytes(lz4.compress_block(block, store_size=False))
        else:
            packed = bytes(lz4.compress_block(block, mode="high_compression", compression=level, store_size=False))
        if len(packed) >= len(block):
            parts.append(_UINT_LE.pack(len(block) | _UNCOMPRESSED))
            parts.append(bytes(block))
        else:
            parts.append(_UINT_LE.pack(len(packed)))
            parts.append(packed)
    parts.append(b"\x00\x00\x00\x00")
    return b"".join(parts)


def decompress(data: memoryview, max_size: int, *, check_header: bool = True) -> bytes:
    """Open one frame. Bytes behind its end mark are ignored, as by Kafka."""
    try:
        flags, max_block, position = _read_header(data, check_header=check_header)
        blocks, end, bound = _read_blocks(data, position, max_block, flags)
    except (IndexError, StructError):
        raise DecompressionError("lz4: the stream ended prematurely") from None
    if bound > max_size:
        stored = sum(size for _, size, is_packed in blocks if not is_packed)
        if stored > max_size:
            raise DecompressedSizeError(f"lz4: more than {max_size} bytes")
        bound = max_size
    if flags & _FLG_BLOCK_CHECKSUM:
        return _decompress_checked(data[:end], position, bound, max_size)
    return _decompress_blocks(data, blocks, max_block, bound, max_size)


def _read_header(data: memoryview, *, check_header: bool) -> tuple[int, int, int]:
    """Flags, largest block size, position of the first block."""
    if bytes(data[:4]) != _MAGIC:
        raise DecompressionError("lz4: not a frame")
    flags, block_descriptor = data[4], data[5]
    if flags >> 6 != 1 or flags & 3:
        raise DecompressionError(f"lz4: unsupported frame flags {flags:#04x}")
    if not flags & 0x20:
        raise DecompressionError("lz4: dependent blocks are not supported")
    if block_descriptor & 0x8F or block_descriptor >> 4 < 4:
        raise DecompressionError(f"lz4: invalid block descriptor {block_descriptor:#04x}")
    position = 14 if flags & _FLG_CONTENT_SIZE else 6
    checksum = data[position]
    if check_header and checksum != _xxh32_small(bytes(data[4:position])) >> 8 & 0xFF:
        raise DecompressionError("lz4: the frame descriptor's checksum is wrong")
    return flags, 1 << (2 * (block_descriptor >> 4) + 8), position + 1


def _read_blocks(
    data: memoryview, position: int, max_block: int, flags: int
) -> tuple[list[tuple[int, int, bool]], int, int]:
    """(position, size, compressed) of each block, the end of the frame, and how many bytes all can become at most."""
    blocks: list[tuple[int, int, bool]] = []
    checksum_size = 4 if flags & _FLG_BLOCK_CHECKSUM else 0
    bound = 0
    while True:
        (size,) = _UINT_LE.unpack_from(data, position)
        position += 4
        is_packed = size < _UNCOMPRESSED
        size &= ~_UNCOMPRESSED
        if size == 0:
            break
        if size > max_block:
            raise DecompressionError(f"lz4: block size {size} exceeds {max_block}")
        if position + size + checksum_size > len(data):
            raise DecompressionError("lz4: the stream ended prematurely")
        blocks.append((position, size, is_packed))
        bound += min(max_block, size * _MAX_RATIO) if is_packed else size
        position += size + checksum_size
    if flags & _FLG_CONTENT_CHECKSUM:
        position += 4
        if position > len(data):
            raise DecompressionError("lz4: the stream ended prematurely")
    return blocks, position, bound


def _decompress_blocks(
    data: memoryview, blocks: list[tuple[int, int, bool]], max_block: int, bound: int, max_size: int
) -> bytes:
    from cramjam import DecompressionError as CramjamError
    from cramjam import lz4

    out = bytearray(bound)
    view = memoryview(out)
    written = 0
    for position, size, is_packed in blocks:
        block = data[position : position + size]
        room = min(max_block, bound - written)
        if not is_packed:
            if size > room:
                raise DecompressedSizeError(f"lz4: more than {max_size} bytes")
            view[written : written + size] = block
            written += size
            continue
        try:
            written += lz4.decompress_block_into(block, view[written : written + room], output_len=room)
        except CramjamError as error:
            if room < min(max_block, size * _MAX_RATIO):
                raise DecompressedSizeError(f"lz4: more than {max_size} bytes, or corrupt: {error}") from None
            raise DecompressionError(f"lz4: {error}") from None
    return bytes(view[:written])


def _decompress_checked(frame: memoryview, header_end: int, bound: int, max_size: int) -> bytes:
    """A frame with block checksums, which only native code verifies at a bearable price (no known client writes it)."""
    from cramjam import DecompressionError as CramjamError
    from cramjam import lz4

    patched = bytearray(frame)
    patched[header_end - 1] = _xxh32_small(bytes(frame[4 : header_end - 1])) >> 8 & 0xFF
    out = bytearray(bound)
    try:
        size = lz4.decompress_into(patched, out)
    except CramjamError as error:
        if "write whole buffer" in str(error):
            raise DecompressedSizeError(f"lz4: more than {max_size} bytes") from None
        raise DecompressionError(f"lz4: {error}") from None
    return bytes(memoryview(out)[:size])


_PRIME_1: Final = 2654435761
_PRIME_2: Final = 2246822519
_PRIME_3: Final = 3266489917
_PRIME_4: Final = 668265263
_PRIME_5: Final = 374761393
_MASK: Final = 0xFFFFFFFF


def _xxh32_small(data: bytes) -> int:
    """xxHash32 with seed 0 of fewer than 16 bytes, which is what a frame descriptor has."""
    digest = _PRIME_5 + len(data)
    position = 0
    while position + 4 <= len(data):
        digest = (digest + _UINT_LE.unpack_from(data, position)[0] * _PRIME_3) & _MASK
        digest = ((digest << 17 | digest >> 15) & _MASK) * _PRIME_4 & _MASK
        position += 4
    for byte in data[position:]:
        digest = (digest + byte * _PRIME_5) & _MASK
        digest = ((digest << 11 | digest >> 21) & _MASK) * _PRIME_1 & _MASK
    digest ^= digest >> 15
    digest = digest * _PRIME_2 & _MASK
    digest ^= digest >> 13
    digest = digest * _PRIME_3 & _MASK
    return digest ^ digest >> 16
