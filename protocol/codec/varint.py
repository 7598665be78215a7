"""Variable-length integers: seven bits a byte, lowest first.

Messages use unsigned ones, for compact lengths and tags. Records use zig-zag ones, where small negative numbers are
short too. Readers take and return a position; IndexError means that the buffer ended, ValueError that the number is
longer than its type allows. Longer encodings than necessary are accepted, as by Kafka.

Kafka: ByteUtils.
"""

from __future__ import annotations

from odradek.protocol.codec.limits import MAX_VARINT_BYTES, MAX_VARLONG_BYTES

_MAX_UINT32 = (1 << 32) - 1
_MAX_UINT64 = (1 << 64) - 1
ONE_BYTE = tuple(bytes((value,)) for value in range(128))


def read_uvarint(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """An unsigned varint of at most five bytes: (value, position after it)."""
    first = data[position]
    if first < 128:
        return first, position + 1
    return uvarint_tail(data, position + 1, first)


def uvarint_tail(data: bytes | memoryview, position: int, first: int) -> tuple[int, int]:
    """The rest of an unsigned varint whose first byte has been read and says that more follow."""
    byte = data[position]
    value = (first & 127) | (byte & 127) << 7
    if byte < 128:
        return value, position + 1
    byte = data[position + 1]
    value |= (byte & 127) << 14
    if byte < 128:  # the size of most batches
        return value, position + 2
    position += 2
    for shift in range(21, 7 * MAX_VARINT_BYTES, 7):
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > _MAX_UINT32:
                raise ValueError("varint does not fit into 32 bits")
            return value, position
    raise ValueError(f"varint is longer than {MAX_VARINT_BYTES} bytes")


def write_uvarint(value: int) -> bytes:
    """The shortest unsigned varint of a value below 2**32."""
    if 0 <= value < 128:
        return ONE_BYTE[value]
    if 0 < value < 1 << 14:
        return bytes((value & 127 | 128, value >> 7))
    if not 0 <= value <= _MAX_UINT32:
        raise ValueError(f"{value} is outside the range of an unsigned varint")
    return _write(value)


def read_varlong(data: bytes | memoryview, position: int) -> tuple[int, int]:
    """A zig-zag varint of 64 bits. As in Kafka, bits beyond the 64th are dropped: what it has accepted must stay
    readable.
    """
    value = 0
    for shift in range(0, 7 * MAX_VARLONG_BYTES, 7):
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            value &= _MAX_UINT64
            return (value >> 1) ^ -(value & 1), position
    raise ValueError(f"varint is longer than {MAX_VARLONG_BYTES} bytes")


def write_varint(value: int) -> bytes:
    """A zig-zag varint; the same encoding serves 32 and 64 bits."""
    zigzag = (value << 1) ^ (value >> 63)
    return ONE_BYTE[zigzag] if zigzag < 128 else _write(zigzag)


def _write(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)
