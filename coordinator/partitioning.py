"""Maps a group id or transactional id to its partition of the internal topic.

The hash is Java's `String.hashCode` over UTF-16 code units. `Utils.abs` removes the sign: -2^31, which has no positive
counterpart, becomes 0. (The producer's partitioner masks the sign bit instead; masking here would map `my-group` to
partition 36 of 50 instead of 12.)

Kafka: GroupMetadataManager.partitionFor, TransactionStateManager.partitionFor, Utils.abs.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

REMEMBERED_HASHES: Final = 1024
"""One transaction needs the hash of its id a dozen times. An id has at most 32 KiB, so the cache at most 32 MiB."""


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
    """The partition of the internal topic that holds the key's records."""
    value = java_string_hash(key)
    return (0 if value == -0x8000_0000 else abs(value)) % partition_count
