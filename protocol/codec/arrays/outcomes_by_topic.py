"""What came of the partitions of a request, by topic: the answer is made while it is encoded.

A request of one megabyte may name 70,000 topics with a partition each, or one topic with 260,000. A partition needs
twelve bytes here, and a topic about a hundred beside its name, where objects of their own have 60 and 400.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Final, Generic, TypeVar

from odradek.protocol.codec.arrays.mapped import ReadInOrder

PartitionT = TypeVar("PartitionT")
TopicT = TypeVar("TopicT")

_END: Final = -1
"""In place of the place of the next partition."""


class OutcomesByTopic(ReadInOrder[TopicT], Generic[PartitionT, TopicT]):
    """The topics, in the order in which they came; their partitions, too. All are made anew each time they are read."""

    __slots__ = ("_make", "_make_topic", "_partitions", "_places", "_topics")

    def __init__(
        self, make_topic: Callable[[str, Sequence[PartitionT]], TopicT], make: Callable[[int, int], PartitionT]
    ) -> None:
        """`make_topic(name, partitions)` is an element, and `make(index, code)` one of its partitions."""
        self._make_topic: Callable[[str, Sequence[PartitionT]], TopicT] = make_topic
        self._make: Callable[[int, int], PartitionT] = make
        self._places: dict[str, int] = {}
        """Of each topic in the array that follows."""
        self._topics = array("i")
        """Of each topic the places of its first and its last partition, and how many it has."""
        self._partitions = array("i")
        """Of each partition its index, its code, and the place of the next one of its topic."""

    def add(self, topic: str, index: int, code: int) -> None:
        added = len(self._partitions)
        place = self._places.get(topic)
        if place is None:
            self._places[topic] = len(self._topics)
            self._topics.extend((added, added, 1))
        else:
            self._partitions[self._topics[place + 1] + 2] = added
            self._topics[place + 1] = added
            self._topics[place + 2] += 1
        self._partitions.extend((index, code, _END))

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[TopicT]:
        for name, place in self._places.items():
            yield self._make_topic(name, _Partitions(self, place))


class _Partitions(ReadInOrder[PartitionT]):
    """Those of one topic."""

    __slots__ = ("_all", "_place")

    def __init__(self, every: OutcomesByTopic[PartitionT, TopicT], place: int) -> None:
        self._all = every
        self._place = place

    def __len__(self) -> int:
        return self._all._topics[self._place + 2]

    def __iter__(self) -> Iterator[PartitionT]:
        make, partitions = self._all._make, self._all._partitions
        place = self._all._topics[self._place]
        while place != _END:
            index, code, following = partitions[place : place + 3]
            yield make(index, code)
            place = following
