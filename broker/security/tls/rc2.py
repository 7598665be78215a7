"""The cipher RC2 (RFC 2268), decryption only. The `keytool` of Java 16 and earlier encrypts certificates with it.

`cryptography` has it with keys of 128 bits only; these stores have keys of 40 bits.
"""

from __future__ import annotations

import struct
from typing import Final

BLOCK_BYTES: Final = 8
_BLOCK: Final = struct.Struct("<4H")
_MASK: Final = 0xFFFF
_ROTATIONS: Final = (1, 2, 3, 5)
_MASHED_AFTER: Final = frozenset((11, 5))
"""The rounds, counted from 15 down to 0, that a mashing round follows."""

_PI_TABLE: Final = bytes.fromhex(
    "d978f9c419ddb5ed28e9fd794aa0d89dc67e37832b76538e624c6488448bfba2"
    "179a59f587b34f1361456d8d09817d32bd8f40eb86b77b0bf09521225c6b4e82"
    "54d66593ce60b21c7356c014a78cf1dc1275ca1f3bbee4d1423dd430a33cb626"
    "6fbf0eda4669075727f21d9bbc944303f811c7f690ef3ee706c3d52fc8661ed7"
    "08e8eade8052eef784aa72ac354d6a2a961ad2715a1549744b9fd05e0418a4ec"
    "c2e0416e0f51cbcc2491af50a1f47039997c3a8523b8b47afc02365b25559731"
    "2d5dfa98e38a92ae05df2910676cbac9d300e6cfe19ea82c6316013f58e289a9"
    "0d38341bab33ffb0bb480c5fb9b1cd2ec5f3db47e5a59c770aa62068fe7fc1ad"
)


def decrypt_cbc(key: bytes, iv: bytes, data: bytes) -> bytes:
    """The blocks of `data`, padding included. The key has as many effective bits as it has bits."""
    words = _expanded(key)
    before = iv
    plain = bytearray()
    for at in range(0, len(data), BLOCK_BYTES):
        block = data[at : at + BLOCK_BYTES]
        plain += bytes(a ^ b for a, b in zip(_decrypt(words, block), before, strict=True))
        before = block
    return bytes(plain)


def _expanded(key: bytes) -> tuple[int, ...]:
    size = len(key)
    buffer = bytearray(key)
    for i in range(size, 128):
        buffer.append(_PI_TABLE[(buffer[i - 1] + buffer[i - size]) & 0xFF])
    buffer[128 - size] = _PI_TABLE[buffer[128 - size]]
    for i in reversed(range(128 - size)):
        buffer[i] = _PI_TABLE[buffer[i + 1] ^ buffer[i + size]]
    return struct.unpack("<64H", buffer)


def _decrypt(words: tuple[int, ...], block: bytes) -> bytes:
    r = list(_BLOCK.unpack(block))
    for turn in reversed(range(16)):
        for i in (3, 2, 1, 0):
            by = _ROTATIONS[i]
            value = (r[i] >> by | r[i] << 16 - by) & _MASK
            mixed = words[4 * turn + i] + (r[i - 1] & r[i - 2]) + (~r[i - 1] & r[i - 3])
            r[i] = (value - mixed) & _MASK
        if turn in _MASHED_AFTER:
            for i in (3, 2, 1, 0):
                r[i] = (r[i] - words[r[i - 1] & 63]) & _MASK
    return _BLOCK.pack(*r)
