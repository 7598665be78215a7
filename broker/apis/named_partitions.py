"""The partitions that a request names, each once, in the order of the first mentions.

A request of 1 MB may name 260,000 partitions, and a set of them would need 30 MB. Of most requests nothing is copied
here: the indexes of a topic are those of the request.

Kafka makes sets and maps of them: its heap is large.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Final

from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.repeated_items import FEW, repeated

INDEXES_A_STEP: Final = 64


class NamedPartitions:
    """They may be read again and again, also one topic after the other."""

    __slots__ = ("by_topic",)

    def __init__(self, by_topic: dict[str, Sequence[int]]) -> None:
        self.by_topic = by_topic
        """The indexes, of which there is at least one for each topic. They must not change."""

    def __iter__(self) -> Iterator[TopicPartition]:
        return (TopicPartition(topic, index) for topic, indexes in self.by_topic.items() for index in indexes)


def named_partitions(topics: Iterable[tuple[str, Sequence[int]]]) -> Generator[None, None, NamedPartitions]:
    """From (topic, indexes), a step for each at least. What is named twice is there once."""
    by_topic: dict[str, Sequence[int]] = {}
    copies: dict[str, list[int]] = {}
    for name, indexes in topics:
        yield
        if name in copies:
            copies[name] += indexes
        elif name in by_topic:
            copies[name] = [*by_topic[name], *indexes]
        elif indexes:
            by_topic[name] = indexes
    by_topic.update(copies)
    for name, named in by_topic.items():
        if len(named) > 1:
            by_topic[name] = yield from _once(named)
    return NamedPartitions(by_topic)


def _once(indexes: Sequence[int]) -> Generator[None, None, Sequence[int]]:
    if len(indexes) <= FEW:
        return list(dict.fromkeys(indexes))
    several = yield from repeated(indexes)
    if not several:
        return indexes
    found: list[int] = []
    seen: set[int] = set()
    for number, index in enumerate(indexes, 1):
        if index not in several:
            found.append(index)
        elif index not in seen:
            seen.add(index)
            found.append(index)
        if number % INDEXES_A_STEP == 0:
            yield
    return found
