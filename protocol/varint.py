"""Variable-length integers: seven bits a byte, least significant group first, high bit set while more follow.

Three readings of one encoding: *unsigned* (compact lengths and tags of the wire protocol), *varint* and *varlong*
(zig-zag: the sign in bit 0; record fields). Answers to `org.apache.kafka.common.utils.ByteUtils`.

Readers take a buffer and a position and return the value and the position behind it. They never read beyond the
buffer and never beyond 5 (10) bytes; both raise `VarintError`. As in Kafka, bits of the last byte that do not fit
into 32 (64) bits are dropped and not refused.
"""

from __future__ import annotations

MAX_VARINT_BYTES = 5
MAX_VARLONG_BYTES = 10

_UINT32 = 0xFFFFFFFF
_UINT64 = 0xFFFFFFFFFFFFFFFF


class VarintError(ValueError):
    """The bytes end inside a varint, or the varint does not end."""


def _read_unsigned(buffer: bytes | bytearray | memoryview, position: int, max_bytes: int) -> tuple[int, int]:
    value = 0
    shift = 0
    try:
        for _ in range(max_bytes):
            byte = buffer[position]
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, position
            shift += 7
    except IndexError:
        raise VarintError("the buffer ends inside a varint") from None
    raise VarintError(f"a varint longer than {max_bytes} bytes")


def read_unsigned_varint(buffer: bytes | bytearray | memoryview, position: int) -> tuple[int, int]:
    """A 32-bit value read as unsigned, and the position behind it."""
    value, position = _read_unsigned(buffer, position, MAX_VARINT_BYTES)
    return value & _UINT32, position


def read_varint(buffer: bytes | bytearray | memoryview, position: int) -> tuple[int, int]:
    """A 32-bit zig-zag value, and the position behind it."""
    value, position = _read_unsigned(buffer, position, MAX_VARINT_BYTES)
    value &= _UINT32
    return (value >> 1) ^ -(value & 1), position


def read_varlong(buffer: bytes | bytearray | memoryview, position: int) -> tuple[int, int]:
    """A 64-bit zig-zag value, and the position behind it."""
    value, position = _read_unsigned(buffer, position, MAX_VARLONG_BYTES)
    value &= _UINT64
    return (value >> 1) ^ -(value & 1), position


def encode_unsigned_varint(value: int) -> bytes:
    """The bytes of an unsigned value below 2**64."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    write_unsigned_varint(out, value)
    return bytes(out)


def write_unsigned_varint(out: bytearray, value: int) -> None:
    """Append an unsigned value below 2**64."""
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)


def write_varint(out: bytearray, value: int) -> None:
    """Append a signed 32-bit value in zig-zag form."""
    write_unsigned_varint(out, value << 1 if value >= 0 else (-value << 1) - 1)


def write_varlong(out: bytearray, value: int) -> None:
    """Append a signed 64-bit value in zig-zag form."""
    write_unsigned_varint(out, value << 1 if value >= 0 else (-value << 1) - 1)


def size_of_unsigned_varint(value: int) -> int:
    """How many bytes `write_unsigned_varint` takes for a value below 2**64."""
    return (value.bit_length() + 6) // 7 or 1


def size_of_varint(value: int) -> int:
    """How many bytes `write_varint` (and `write_varlong`) takes."""
    return size_of_unsigned_varint(value << 1 if value >= 0 else (-value << 1) - 1)


size_of_varlong = size_of_varint
