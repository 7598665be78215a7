"""Chooses the partition of a record.

A key always has the same partition: by murmur2 as Java's clients, or by CRC-32 as librdkafka's. Records without a key
stay with one partition until a batch of it is full, and then go on with another: few large batches instead of many
small ones.

Kafka: BuiltInPartitioner, Utils.murmur2.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final, Protocol

_MASK: Final = 0xFFFFFFFF
_SEED: Final = 0x9747B28C
_M: Final = 0x5BD1E995
_WORD: Final = Struct("<I")


def random_below(limit: int) -> int:
    """For the partitioners of a command. The module `secrets` would load OpenSSL's hashes."""
    return int.from_bytes(os.urandom(8)) % limit


def murmur2(data: bytes) -> int:
    """The hash of Java's clients, unsigned 32 bits."""
    length = len(data)
    h = _SEED ^ length
    rest = length & 3
    for (word,) in _WORD.iter_unpack(data[: length - rest]):
        k = word * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        h = h * _M & _MASK ^ k
    if rest:
        h = (h ^ int.from_bytes(data[length - rest :], "little")) * _M & _MASK
    h = (h ^ h >> 13) * _M & _MASK
    return h ^ h >> 15


def java_partition(key: bytes, count: int) -> int:
    """The partition of a key among `count`. Kafka: BuiltInPartitioner.partitionForKey."""
    return (murmur2(key) & 0x7FFFFFFF) % count


def crc32_partition(key: bytes, count: int) -> int:
    """The partition that librdkafka's `consistent_random` gives to a key."""
    return zlib.crc32(key) % count


class Partitioner(Protocol):
    """Chooses partitions of one topic after the other; one object serves all topics."""

    def partition(self, topic: str, key: bytes | None, count: int, available: Sequence[int]) -> int:
        """The partition of a record. `count`: of the topic; `available`: its partitions that have a leader."""

    def batch_is_full(self, topic: str, partition: int) -> None:
        """A batch of this partition is complete."""


class HashPartitioner:
    """Keys by their hash; records without a key stay with one partition for a batch."""

    def __init__(self, by_key: Callable[[bytes, int], int], choose: Callable[[int], int]) -> None:
        """`choose`: a random number below its argument."""
        self._by_key = by_key
        self._choose = choose
        self._sticky: dict[str, int] = {}

    def partition(self, topic: str, key: bytes | None, count: int, available: Sequence[int]) -> int:
        if key is not None:
            return self._by_key(key, count)
        partition = self._sticky.get(topic)
        if partition is None or (available and partition not in available):
            partition = available[self._choose(len(available))] if available else self._choose(count)
            self._sticky[topic] = partition
        return partition

    def batch_is_full(self, topic: str, partition: int) -> None:
        if self._sticky.get(topic) == partition:
            del self._sticky[topic]


class RoundRobinPartitioner:
    """One partition after the other, whatever the key. Kafka: RoundRobinPartitioner."""

    def __init__(self) -> None:
        self._next: dict[str, int] = {}

    def partition(self, topic: str, key: bytes | None, count: int, available: Sequence[int]) -> int:
        turn = self._next.get(topic, 0)
        self._next[topic] = turn + 1
        return available[turn % len(available)] if available else turn % count

    def batch_is_full(self, topic: str, partition: int) -> None:
        """The turn does not depend on batches."""


PARTITIONERS: Final[dict[str, Callable[[Callable[[int], int]], Partitioner]]] = {
    "murmur2": lambda choose: HashPartitioner(java_partition, choose),
    "crc32": lambda choose: HashPartitioner(crc32_partition, choose),
    "round-robin": lambda choose: RoundRobinPartitioner(),
}
"""By the name on the command line; each takes a function that returns a random number below its argument."""
