"""The partitions of a large request that are refused, with the code of each.

One megabyte may name 170,000 partitions of one topic, or 80,000 topics with one each. A dictionary of them would need
22 MB; here a partition needs 60 bytes, and a topic about a hundred.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TypeAlias

from odradek.protocol.errors import ErrorCode
from odradek.protocol.topic_partition import TopicPartition

_Partitions: TypeAlias = "tuple[int, ErrorCode] | dict[int, ErrorCode]"
"""The only one of a topic, or several."""


class RefusedPartitions(MutableMapping[TopicPartition, ErrorCode]):
    """In the order of the topics' first mentions, and in each topic that of its partitions."""

    __slots__ = ("_by_topic", "_count")

    def __init__(self) -> None:
        self._by_topic: dict[str, _Partitions] = {}
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[TopicPartition]:
        return (topic_partition for topic_partition, _ in self._pairs())

    def __getitem__(self, topic_partition: TopicPartition) -> ErrorCode:
        name, index = topic_partition
        return _codes(self._by_topic[name])[index]

    def __setitem__(self, topic_partition: TopicPartition, code: ErrorCode) -> None:
        name, index = topic_partition
        found = self._by_topic.get(name)
        if found is None:
            self._by_topic[name] = index, code
            self._count += 1
        elif isinstance(found, dict):
            self._count += index not in found
            found[index] = code
        elif found[0] == index:
            self._by_topic[name] = index, code
        else:
            self._by_topic[name] = {**_codes(found), index: code}
            self._count += 1

    def __delitem__(self, topic_partition: TopicPartition) -> None:
        name, index = topic_partition
        left = _codes(self._by_topic[name])
        del left[index]
        self._count -= 1
        if left:
            self._by_topic[name] = left
        else:
            del self._by_topic[name]

    def _pairs(self) -> Iterator[tuple[TopicPartition, ErrorCode]]:
        for name, found in self._by_topic.items():
            if isinstance(found, dict):
                yield from ((TopicPartition(name, index), code) for index, code in found.items())
            else:
                yield TopicPartition(name, found[0]), found[1]


def _codes(found: _Partitions) -> dict[int, ErrorCode]:
    return found if isinstance(found, dict) else {found[0]: found[1]}
