"""Splits the partitions of a request: the coordinator gets only those that exist and that the client may name.

A partition of a topic that the client may not name is refused whether it exists or not.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar

from odradek.protocol.codec.mapped import Outcomes
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
RefusalT = TypeVar("RefusalT")


class NamedTopic(Protocol[PartitionT_co]):
    @property
    def name(self) -> str: ...

    @property
    def partitions(self) -> Sequence[PartitionT_co]: ...


class AnsweredTopic(Protocol):
    name: str
    partitions: Sequence[Any]


Refusals: TypeAlias = dict[str, Outcomes[int, RefusalT]]
"""The refused partitions of each topic."""

AnsweredTopicT = TypeVar("AnsweredTopicT", bound=AnsweredTopic)


def split_by_existence(
    broker: Services,
    topics: Iterable[NamedTopic[PartitionT_co]],
    authorized: Container[str],
    refusal: Callable[[int, int], RefusalT],
) -> Generator[None, None, tuple[list[tuple[str, list[PartitionT_co]]], Refusals[RefusalT]]]:
    """Returns (topic, its existing partitions) for the `authorized` topics in the order of the request, and the
    refusals of the others by topic.
    """
    existing: list[tuple[str, list[PartitionT_co]]] = []
    refused: Refusals[RefusalT] = {}
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
                if topic.name not in refused:
                    refused[topic.name] = Outcomes(refusal)
                refused[topic.name].add(part.partition_index, error)
            if number % LOOKED_UP_A_STEP == 0:
                yield
        if found:
            existing.append((topic.name, found))
        yield
    return existing, refused


def with_refusals(
    refusals: Refusals[RefusalT],
    answered: Iterable[AnsweredTopicT],
    topic_of: Callable[[str, Sequence[RefusalT]], AnsweredTopicT],
) -> Generator[None, None, list[AnsweredTopicT]]:
    """The refused partitions, then the coordinator's results, with one entry a topic, in steps; `topic_of` makes the
    entry of a topic with refused partitions.

    Kafka: OffsetCommitResponse.Builder.merge.
    """
    topics: dict[str, AnsweredTopicT] = {}
    for name, refused in refusals.items():
        topics[name] = topic_of(name, refused)
        yield
    for topic in answered:
        if topic.name in topics:
            for part in topic.partitions:
                refusals[topic.name].append(part)
        else:
            topics[topic.name] = topic
        yield
    return list(topics.values())


def with_outcome(
    refusals: Refusals[RefusalT],
    outcome: Mapping[TopicPartition, ErrorCode],
    topic_of: Callable[[str, Sequence[RefusalT]], AnsweredTopicT],
    partition_of: Callable[[int, ErrorCode], RefusalT],
) -> Generator[None, None, list[AnsweredTopicT]]:
    """The same where the coordinator has one error for each partition."""
    by_topic: dict[str, list[RefusalT]] = {}
    for number, ((name, index), error) in enumerate(outcome.items(), 1):
        by_topic.setdefault(name, []).append(partition_of(index, error))
        if number % LOOKED_UP_A_STEP == 0:
            yield
    answered = yield from listed(topic_of(name, found) for name, found in by_topic.items())
    return (yield from with_refusals(refusals, answered, topic_of))
