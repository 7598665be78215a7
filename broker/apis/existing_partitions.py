"""Splits the partitions of a request: the coordinator gets only those that exist and that the client may name.

A partition of a topic that the client may not name is refused whether it exists or not.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from odradek.protocol.codec.arrays.outcomes_by_topic import OutcomesByTopic
from odradek.protocol.errors import ErrorCode
from odradek.timer.sliced_work import listed

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.protocol.topic_partition import TopicPartition


LOOKED_UP_A_STEP: Final = 16
"""Partitions of a topic that one step looks up."""


class NamedPartition(Protocol):
    @property
    def partition_index(self) -> int: ...


PartitionT_co = TypeVar("PartitionT_co", bound=NamedPartition, covariant=True)


class NamedTopic(Protocol[PartitionT_co]):
    @property
    def name(self) -> str: ...

    @property
    def partitions(self) -> Sequence[PartitionT_co]: ...


AnsweredT = TypeVar("AnsweredT")
AnsweredTopicT = TypeVar("AnsweredTopicT")


def split_by_existence(
    broker: Services,
    topics: Iterable[NamedTopic[PartitionT_co]],
    authorized: Container[str],
    topic_of: Callable[[str, Sequence[AnsweredT]], AnsweredTopicT],
    partition_of: Callable[[int, int], AnsweredT],
) -> Generator[
    None, None, tuple[list[tuple[str, list[PartitionT_co]]], OutcomesByTopic[AnsweredT, AnsweredTopicT] | None]
]:
    """Returns (topic, its existing partitions) for the `authorized` topics in the order of the request, and the answer
    about the others, None if there are none. `topic_of(name, partitions)` and `partition_of(index, code)` make it.
    """
    existing: list[tuple[str, list[PartitionT_co]]] = []
    refused: OutcomesByTopic[AnsweredT, AnsweredTopicT] | None = None
    for topic in topics:
        states = broker.metadata_cache.snapshot.partitions.get(topic.name, {})
        error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic.name not in authorized:
            states, error = {}, ErrorCode.TOPIC_AUTHORIZATION_FAILED
        found = []
        for number, part in enumerate(topic.partitions, 1):
            if part.partition_index in states:
                found.append(part)
            else:
                if refused is None:
                    refused = OutcomesByTopic(topic_of, partition_of)
                refused.add(topic.name, part.partition_index, error)
            if number % LOOKED_UP_A_STEP == 0:
                yield
        if found:
            existing.append((topic.name, found))
        yield
    return existing, refused


def with_outcome(
    refused: OutcomesByTopic[AnsweredT, AnsweredTopicT] | None,
    outcome: Mapping[TopicPartition, ErrorCode],
    topic_of: Callable[[str, Sequence[AnsweredT]], AnsweredTopicT],
    partition_of: Callable[[int, int], AnsweredT],
) -> Generator[None, None, Sequence[AnsweredTopicT]]:
    """The refused partitions, then the coordinator's `outcome` of the others, with one entry a topic, in steps.

    Kafka: OffsetCommitResponse.Builder.merge.
    """
    by_topic: dict[str, list[AnsweredT]] = {}
    for number, ((name, index), error) in enumerate(outcome.items(), 1):
        if refused is None:
            by_topic.setdefault(name, []).append(partition_of(index, error))
        else:
            refused.add(name, index, error)
        if number % LOOKED_UP_A_STEP == 0:
            yield
    return refused or (yield from listed(topic_of(name, found) for name, found in by_topic.items()))
