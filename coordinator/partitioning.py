"""Which partition of an internal topic belongs to a group or transactional id.

The hash is Java's `String.hashCode` over UTF-16 code units, the sign is removed as Kafka's `Utils.abs` removes it:
the one value without a positive counterpart, -2^31, becomes 0. (The producer's partitioner masks the sign bit
instead; masking here would send `my-group` to 36 of 50 partitions and not to 12.)
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

REMEMBERED_HASHES: Final = 1024
"""A transaction asks for the hash of its id a dozen times. Ids have at most 32 KiB: 32 MiB are kept at worst."""


@lru_cache(REMEMBERED_HASHES)
def java_string_hash(text: str) -> int:
    """`String.hashCode()`: 31-polynomial over UTF-16 units, as a signed 32-bit number."""
    value = 0
    if text.isascii():
        for unit in text.encode("ascii"):
            value = (31 * value + unit) & 0xFFFFFFFF
    else:
        units = memoryview(text.encode("utf-16-le", "surrogatepass")).cast("H")
        for unit in units:
            value = (31 * value + unit) & 0xFFFFFFFF
    return value - 0x1_0000_0000 if value & 0x8000_0000 else value


def partition_for(key: str, partition_count: int) -> int:
    """The partition that owns the key."""
    value = java_string_hash(key)
    return (0 if value == -0x8000_0000 else abs(value)) % partition_count
