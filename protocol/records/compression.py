"""The four codecs as Kafka frames them, each with a limit on the size of the output.

No more than `max_size` bytes of output are held: zlib is asked for at most so many, snappy and lz4 blocks are sized
before they are opened, and zstd writes into a buffer that cannot grow. Output beyond the limit raises
`DecompressedSizeError`, any other error of a codec `DecompressionError`.

cramjam is imported on first use: most batches pass through a broker unopened.

Kafka: CompressionType, GzipCompression, SnappyCompression, Lz4Compression and ZstdCompression.
"""

from __future__ import annotations

import zlib
from enum import IntEnum
from struct import Struct
from struct import error as StructError
from typing import Final

from odradek.protocol.records import lz4_frame
from odradek.protocol.records.errors import DecompressedSizeError, DecompressionError, UnsupportedCompressionTypeError
from odradek.protocol.records.layout import MAGIC_V0, MAGIC_V2, MAX_DECOMPRESSED_BYTES


class CompressionType(IntEnum):
    """Codec ids as they stand in the low three bits of the attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


def compress(
    codec: int, data: bytes | bytearray | memoryview, level: int | None = None, magic: int = MAGIC_V2
) -> bytes:
    """Compress as one stream. `level` None is the codec's default; snappy has none."""
    match codec:
        case CompressionType.NONE:
            return bytes(data)
        case CompressionType.GZIP:
            deflate = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, _GZIP_WBITS)
            stream = bytearray(deflate.compress(data) + deflate.flush())
            stream[_GZIP_EXTRA_FLAGS_POSITION] = 0
            stream[_GZIP_OS_POSITION] = _GZIP_OS_UNKNOWN
            return bytes(stream)
        case CompressionType.SNAPPY:
            return _compress_snappy(data)
        case CompressionType.LZ4:
            return lz4_frame.compress(data, level, broken_header_checksum=magic == MAGIC_V0)
        case CompressionType.ZSTD:
            if magic < MAGIC_V2:
                raise UnsupportedCompressionTypeError(f"zstd is not defined for magic {magic}")
            from cramjam import zstd

            return bytes(zstd.compress(data, _ZSTD_DEFAULT_LEVEL if level is None else level))
        case _:
            raise InvalidCodec(codec)


def decompress(
    codec: int, data: bytes | bytearray | memoryview, max_size: int = MAX_DECOMPRESSED_BYTES, magic: int = MAGIC_V2
) -> bytes:
    """Open one compressed stream that becomes at most `max_size` bytes."""
    match codec:
        case CompressionType.NONE:
            return bytes(data)
        case CompressionType.GZIP:
            return _decompress_gzip(data, max_size)
        case CompressionType.SNAPPY:
            return _decompress_snappy(memoryview(data), max_size)
        case CompressionType.LZ4:
            return lz4_frame.decompress(memoryview(data), max_size, check_header=magic != MAGIC_V0)
        case CompressionType.ZSTD:
            if magic < MAGIC_V2:
                raise DecompressionError(f"zstd is not defined for magic {magic}")
            return _decompress_zstd(memoryview(data), max_size)
        case _:
            raise InvalidCodec(codec)


class InvalidCodec(DecompressionError):
    """An id that is no codec. Apache Kafka throws IllegalArgumentException, hence UNKNOWN_SERVER_ERROR."""

    def __init__(self, codec: int) -> None:
        super().__init__(f"Unknown compression type id: {codec}")


# gzip ---------------------------------------------------------------------------------------------------------------

_GZIP_EXTRA_FLAGS_POSITION: Final = 8
"""zlib notes the levels 1 and 9 there, Java writes 0."""
_GZIP_OS_POSITION: Final = 9
_GZIP_OS_UNKNOWN: Final = 255
"""What Java writes: with the same zlib underneath, the whole stream is then the same (RFC 1952, 2.3.1)."""

_GZIP_WBITS: Final = 31
_GZIP_MAGIC: Final = b"\x1f\x8b\x08"
_GZIP_HEADER_SIZE: Final = 10
MAX_GZIP_MEMBERS: Final = 64
"""Streams one after the other in one batch. Each costs a client little, and us a copy of the rest."""


_GZIP_CHUNK: Final = 1024 * 1024
"""The output of one call. zlib needs twice the memory of that: without this a bomb could take twice the whole limit."""


def _decompress_gzip(data: bytes | bytearray | memoryview, max_size: int) -> bytes:
    """As Java's GZIPInputStream: members follow each other, what follows the last and is no member is ignored."""
    parts: list[bytes] = []
    left = max_size
    rest: bytes | bytearray | memoryview = data
    for _ in range(MAX_GZIP_MEMBERS):
        inflate = zlib.decompressobj(_GZIP_WBITS)
        while not inflate.eof:
            try:
                # One more than allowed, so that exactly max_size ends regularly and 0 does not mean "no limit".
                part = inflate.decompress(rest, min(left + 1, _GZIP_CHUNK))
            except zlib.error as error:
                raise DecompressionError(f"gzip: {error}") from None
            left -= len(part)
            if left < 0:
                raise DecompressedSizeError(f"gzip: more than {max_size} bytes")
            if not part and not inflate.eof:
                raise DecompressionError("gzip: the stream is truncated")
            parts.append(part)
            rest = inflate.unconsumed_tail
        rest = inflate.unused_data
        if len(rest) < _GZIP_HEADER_SIZE or not rest.startswith(_GZIP_MAGIC):
            return b"".join(parts)
    raise DecompressionError(f"gzip: more than {MAX_GZIP_MEMBERS} members")


# snappy -------------------------------------------------------------------------------------------------------------

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_SNAPPY_BLOCK_SIZE: Final = 32 * 1024
_SNAPPY_MAX_RATIO: Final = 64
"""No snappy block grows more (a three-byte copy makes at most 64 bytes): a larger declared size is false."""
_INT: Final = Struct(">i")


def _compress_snappy(data: bytes | bytearray | memoryview) -> bytes:
    """The framing of Xerial's SnappyOutputStream, which every Kafka client writes."""
    from cramjam import snappy

    parts = [_XERIAL_HEADER]
    view = memoryview(data)
    for start in range(0, len(view), _SNAPPY_BLOCK_SIZE):
        block = bytes(snappy.compress_raw(view[start : start + _SNAPPY_BLOCK_SIZE]))
        parts.append(_INT.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(data: memoryview, max_size: int) -> bytes:
    """As Xerial's SnappyInputStream: framed blocks, framed streams one after the other, or one raw block."""
    blocks = _snappy_blocks(data)
    sizes: list[int] = []
    total = 0
    for block in blocks:
        size = _snappy_declared_size(block)
        total += size
        if total > max_size:
            raise DecompressedSizeError(f"snappy: more than {max_size} bytes")
        sizes.append(size)
    from cramjam import DecompressionError as CramjamError
    from cramjam import snappy

    out = bytearray(total)
    view = memoryview(out)
    position = 0
    try:
        for block, size in zip(blocks, sizes, strict=True):
            if size:
                snappy.decompress_raw_into(block, view[position : position + size])  # to the byte, or it raises
            position += size
    except CramjamError as error:
        raise DecompressionError(f"snappy: {error}") from None
    return bytes(out)


def _snappy_blocks(data: memoryview) -> list[memoryview]:
    if not data:
        raise DecompressionError("snappy: empty stream")
    if bytes(data[:8]) != _XERIAL_MAGIC or len(data) < len(_XERIAL_HEADER):
        return [data]
    blocks: list[memoryview] = []
    position = 0
    end = len(data)
    while position + 4 <= end:  # one to three trailing bytes are ignored
        if data[position : position + 4] == _XERIAL_MAGIC[:4]:
            header = bytes(data[position : position + len(_XERIAL_HEADER)])
            if len(header) < len(_XERIAL_HEADER):
                raise DecompressionError("snappy: the stream ends inside a header")
            if not header.startswith(_XERIAL_MAGIC):
                break  # the end, as for Xerial's reader
            position += len(_XERIAL_HEADER)
            continue
        (size,) = _INT.unpack_from(data, position)
        position += 4
        if size < 0 or position + size > end:
            raise DecompressionError(f"snappy: a block of {size} bytes does not fit")
        blocks.append(data[position : position + size])
        position += size
    return blocks


def _snappy_declared_size(block: memoryview) -> int:
    """The uncompressed length a raw block begins with (an unsigned 32-bit varint)."""
    size = shift = 0
    for byte in block[:5]:
        size |= (byte & 0x7F) << shift
        if byte < 0x80:
            if size > len(block) * _SNAPPY_MAX_RATIO:
                raise DecompressionError(f"snappy: {len(block)} bytes cannot become {size}")
            return size
        shift += 7
    raise DecompressionError("snappy: a block without a length")


# zstd ---------------------------------------------------------------------------------------------------------------

_ZSTD_DEFAULT_LEVEL: Final = 3
_ZSTD_MAGIC: Final = 0xFD2FB528
_ZSTD_SKIPPABLE_MAGIC: Final = 0x184D2A5  # without the last four bits
_ZSTD_MAX_BLOCK: Final = 128 * 1024
_ZSTD_MAX_WALKED_BLOCKS: Final = 4096
_UINT_LE: Final = Struct("<I")


def _decompress_zstd(data: memoryview, max_size: int) -> bytes:
    """Open into a buffer of the size the block headers allow, at most `max_size`."""
    from cramjam import DecompressionError as CramjamError
    from cramjam import zstd

    bound = zstd_size_bound(data, max_size)
    out = bytearray(min(bound, max_size))
    try:
        size = zstd.decompress_into(data, out)
    except CramjamError as error:
        if bound > max_size and "write whole buffer" in str(error):
            raise DecompressedSizeError(f"zstd: more than {max_size} bytes") from None
        raise DecompressionError(f"zstd: {error}") from None
    return bytes(memoryview(out)[:size])


def zstd_size_bound(data: memoryview, max_size: int) -> int:
    """An upper bound of the decompressed size, read from frame and block headers; `max_size` + 1 when it is higher."""
    bound = blocks = position = 0
    try:
        while position < len(data):
            (magic,) = _UINT_LE.unpack_from(data, position)
            if magic >> 4 == _ZSTD_SKIPPABLE_MAGIC:
                position += 8 + int(_UINT_LE.unpack_from(data, position + 4)[0])
                continue
            if magic != _ZSTD_MAGIC:
                raise DecompressionError("zstd: not a frame")
            descriptor = data[position + 4]
            position += 5 + _zstd_header_rest(descriptor)
            last = False
            while not last:
                block = data[position] | data[position + 1] << 8 | data[position + 2] << 16
                last, kind, size = bool(block & 1), block >> 1 & 3, block >> 3
                bound += size if kind < 2 else _ZSTD_MAX_BLOCK
                position += 4 if kind == 1 else 3 + size
                blocks += 1
                if bound > max_size or blocks > _ZSTD_MAX_WALKED_BLOCKS:
                    return max_size + 1
            if descriptor & 4:
                position += 4
    except (IndexError, StructError):
        raise DecompressionError("zstd: the frame is truncated") from None
    return bound


def _zstd_header_rest(descriptor: int) -> int:
    """Bytes of the frame header behind its descriptor: window, dictionary id, content size."""
    single_segment = descriptor >> 5 & 1
    content_size = (single_segment, 2, 4, 8)[descriptor >> 6]
    return (1 - single_segment) + (0, 1, 2, 4)[descriptor & 3] + content_size
