"""The order in which Scala hash tables return their elements, for output that Apache Kafka prints in that order.

A table has a power of two of slots, at least 16. It doubles when the next element would fill it to three quarters. An
immutable HashSet (one of five and more) is added as a whole: the table first grows by its size, whatever the table
contains. Elements are ordered by slot, and by hash within a slot.

Source: mutable.HashMap and HashSet of Scala 2.13, String.hashCode.

Kafka: TopicPartition.hashCode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from odradek.coordinator.partitioning import java_string_hash

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from odradek.protocol.topic_partition import TopicPartition

_SLOTS_MIN: Final = 16
_SMALL_SET_MAX: Final = 4
"""Immutable sets up to this size are no hash tables in Scala."""
_BITS: Final = 0xFFFFFFFF


def order_of_names(names: Iterable[str]) -> list[str]:
    """The order of distinct texts that were added one by one."""
    distinct = list(dict.fromkeys(names))
    return sorted(distinct, key=lambda name: _place(_string_hash(name), _slots_for(len(distinct))))


def order_of_partitions(topics: Iterable[Sequence[TopicPartition]]) -> list[TopicPartition]:
    """The order of partitions that were added topic by topic, each time as an immutable set."""
    slots = _SLOTS_MIN
    found: dict[TopicPartition, None] = {}
    for partitions in topics:
        added = dict.fromkeys(partitions)
        if len(added) > _SMALL_SET_MAX:
            slots = max(slots, _power_of_two((len(added) + 1) * 4 // 3))
        else:
            # The table may double before any added element, also before one that it contains already.
            for partition in added:
                if len(found) + 1 >= slots * 3 // 4:
                    slots *= 2
                found[partition] = None
        found |= added
    return sorted(found, key=lambda partition: _place(_partition_hash(partition), slots))


def _slots_for(count: int) -> int:
    slots = _SLOTS_MIN
    while count >= slots * 3 // 4:
        slots *= 2
    return slots


def _power_of_two(capacity: int) -> int:
    return 2 << (max(capacity - 1, 4).bit_length() - 1)


def _place(hash_code: int, slots: int) -> tuple[int, int]:
    spread = hash_code ^ (hash_code >> 16)
    return spread & (slots - 1), (spread ^ 0x80000000) - 0x80000000


def _string_hash(text: str) -> int:
    return java_string_hash(text) & _BITS


def _partition_hash(partition: TopicPartition) -> int:
    return (31 * (31 + partition.partition) + _string_hash(partition.topic)) & _BITS
