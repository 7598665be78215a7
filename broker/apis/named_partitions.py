"""The partitions that a request names, each once, and what came of them.

One megabyte may name 80,000 topics with a partition each, or one topic with 260,000 partitions. A set of them would
need 30 MB, and a dictionary of the topics 15. Here they stay in the request, and are read from it again for each pass;
only what is named twice is copied. What came of a partition is one number or one reference, in the same order.

Kafka makes sets and maps of them: its heap is large.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from typing import Final, Generic, TypeVar

from odradek.protocol.codec.arrays.mapped import Mapped, ReadInOrder, Zipped
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.repeated_items import FEW, repeated

TopicT = TypeVar("TopicT")
PartitionT = TypeVar("PartitionT")
OutcomeT = TypeVar("OutcomeT")
AnswerT = TypeVar("AnswerT")
AnsweredTopicT = TypeVar("AnsweredTopicT")

PARTITIONS_A_STEP: Final = 64

SKIPPED_MAX: Final = 64
"""Topics in a row that have no partitions or were named before: who reads the others skips them in one step."""


class NamedPartitions(Generic[PartitionT]):
    """They may be read again and again, also one topic after the other, while the request does not change.

    Both the topics and the partitions of a topic are in the order of their first mentions. Of a partition that is
    named twice the last mention counts.
    """

    __slots__ = ("_count", "_index", "_repeated", "_topics", "are_as_requested")

    def __init__(
        self,
        topics: Sequence[tuple[str, Sequence[PartitionT]]],
        index: Callable[[PartitionT], int],
        repeated: dict[str, Sequence[PartitionT]] | None = None,
        count: int | None = None,
    ) -> None:
        """`topics`: each with its partitions, of which `index` is the number. Those in `repeated` have its partitions
        instead, and `count` are different and have partitions; by default none is named twice and all have some.
        """
        self._topics = topics
        self._index = index
        self._repeated = repeated or {}
        self._count = len(topics) if count is None else count
        self.are_as_requested = not self._repeated and self._count == len(topics)
        """Whether the request names nothing twice, and no topic without partitions."""

    @property
    def topic_count(self) -> int:
        return self._count

    def topics(self) -> Iterator[tuple[str, Sequence[PartitionT]]]:
        """Each topic with its partitions, of which there is at least one."""
        left = dict(self._repeated)
        for name, partitions in self._topics:
            if name in left and partitions:
                yield name, left.pop(name)
            elif partitions and name not in self._repeated:
                yield name, partitions

    def partitions(self) -> Iterator[tuple[TopicPartition, PartitionT]]:
        """Each with what the request says about it."""
        index = self._index
        return (
            (TopicPartition(name, index(partition)), partition)
            for name, partitions in self.topics()
            for partition in partitions
        )

    def __iter__(self) -> Iterator[TopicPartition]:
        index = self._index
        return (
            TopicPartition(name, index(partition)) for name, partitions in self.topics() for partition in partitions
        )


def named_partitions(
    topics: Sequence[tuple[str, Sequence[PartitionT]]], index: Callable[[PartitionT], int]
) -> Generator[None, None, NamedPartitions[PartitionT]]:
    """From (topic, partitions), in a step for each at least; `index` is the number of a partition."""
    twice = (yield from repeated(Mapped(_name, topics))) if len(topics) > 1 else set()
    found: dict[str, Sequence[PartitionT]] = {}
    several: dict[str, list[PartitionT]] = {}
    count = skipped = longest_skipped = 0
    for name, partitions in topics:
        yield
        if not partitions or name in several:
            skipped += 1
            longest_skipped = max(longest_skipped, skipped)
        else:
            skipped = 0
            count += 1
        if name in twice and partitions:
            mentions = several.setdefault(name, [])
            for number, partition in enumerate(partitions, 1):
                mentions.append(partition)
                if number % PARTITIONS_A_STEP == 0:
                    yield
        elif partitions:
            once = yield from _once(partitions, index)
            if once is not partitions:
                found[name] = once
    for name, mentions in several.items():
        found[name] = yield from _once(mentions, index)
    named = NamedPartitions(topics, index, found, count)
    if longest_skipped > SKIPPED_MAX:
        named = yield from _copied(named, topics, found, index)
    return named


def _copied(
    named: NamedPartitions[PartitionT],
    topics: Sequence[tuple[str, Sequence[PartitionT]]],
    repeated: dict[str, Sequence[PartitionT]],
    index: Callable[[PartitionT], int],
) -> Generator[None, None, NamedPartitions[PartitionT]]:
    """The same, with no other topics between them."""
    found: dict[str, Sequence[PartitionT]] = {}
    for name, partitions in topics:
        yield
        if partitions and name not in found:
            found[name] = repeated.get(name, partitions)
    copied = NamedPartitions(list(found.items()), index)
    copied.are_as_requested = named.are_as_requested
    return copied


def _name(topic: tuple[str, Sequence[PartitionT]]) -> str:
    return topic[0]


def _once(
    partitions: Sequence[PartitionT], index: Callable[[PartitionT], int]
) -> Generator[None, None, Sequence[PartitionT]]:
    """The same object, unless a partition is there twice."""
    if len(partitions) == 1:
        return partitions
    if len(partitions) <= FEW:
        by_index = {index(partition): partition for partition in partitions}
        return partitions if len(by_index) == len(partitions) else list(by_index.values())
    twice = yield from repeated(Mapped(index, partitions))
    if not twice:
        return partitions
    last: dict[int, PartitionT] = {}
    for number, partition in enumerate(partitions, 1):
        if index(partition) in twice:
            last[index(partition)] = partition
        if number % PARTITIONS_A_STEP == 0:
            yield
    found: list[PartitionT] = []
    for number, partition in enumerate(partitions, 1):
        if index(partition) not in twice:
            found.append(partition)
        elif index(partition) in last:
            found.append(last.pop(index(partition)))
        if number % PARTITIONS_A_STEP == 0:
            yield
    return found


class AnsweredPartitions(ReadInOrder[AnsweredTopicT], Generic[PartitionT, OutcomeT, AnswerT, AnsweredTopicT]):
    """The topics of an answer, which are made while they are encoded."""

    __slots__ = ("_make", "_make_topic", "_named", "_outcomes")

    def __init__(
        self,
        named: NamedPartitions[PartitionT],
        outcomes: Sequence[OutcomeT],
        make_topic: Callable[[str, Sequence[AnswerT]], AnsweredTopicT],
        make: Callable[[PartitionT, OutcomeT], AnswerT],
    ) -> None:
        """`outcomes`: what came of each partition, in their order. `make_topic(name, partitions)` is an element, and
        `make(partition, outcome)` one of its partitions.
        """
        self._named = named
        self._outcomes = outcomes
        self._make_topic: Callable[[str, Sequence[AnswerT]], AnsweredTopicT] = make_topic
        self._make: Callable[[PartitionT, OutcomeT], AnswerT] = make

    def __len__(self) -> int:
        return self._named.topic_count

    def __iter__(self) -> Iterator[AnsweredTopicT]:
        first = 0
        for name, partitions in self._named.topics():
            after = first + len(partitions)
            outcomes = Mapped(self._outcomes.__getitem__, range(first, after))
            yield self._make_topic(name, Zipped(self._make, partitions, outcomes))
            first = after


def common_outcome_or_each(
    named: NamedPartitions[int],
    codes: Sequence[int],
    make_topic: Callable[[str, Sequence[AnswerT]], AnsweredTopicT],
    make: Callable[[int, int], AnswerT],
) -> int | AnsweredPartitions[int, int, AnswerT, AnsweredTopicT]:
    """The code of all partitions, if it is one and they are those of the request; else the topics of the answer.

    One megabyte may have 40,000 transactions with a partition each: of most of them this number is all that is kept.
    """
    if named.are_as_requested and len(codes) <= FEW and len(set(codes)) == 1:
        return codes[0]
    return AnsweredPartitions(named, codes, make_topic, make)
