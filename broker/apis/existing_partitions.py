"""Splits the partitions of a request into existing and missing ones. The coordinator gets only the existing ones."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services


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


class AnsweredTopic(Protocol[RefusalT]):
    name: str
    partitions: list[RefusalT]


def split_by_existence(
    broker: Services, topics: Iterable[NamedTopic[PartitionT_co]], refusal: Callable[[int], RefusalT]
) -> Generator[None, None, tuple[list[tuple[str, list[PartitionT_co]]], dict[str, list[RefusalT]]]]:
    """Returns (topic, its existing partitions) in the order of the request, and the refusals of the others by topic."""
    existing: list[tuple[str, list[PartitionT_co]]] = []
    missing: dict[str, list[RefusalT]] = {}
    for topic in topics:
        states = broker.metadata_cache.snapshot.partitions.get(topic.name, {})
        found = []
        for part in topic.partitions:
            if part.partition_index in states:
                found.append(part)
            else:
                missing.setdefault(topic.name, []).append(refusal(part.partition_index))
            yield
        if found:
            existing.append((topic.name, found))
    return existing, missing


def add_refusals(
    answered: Iterable[AnsweredTopic[RefusalT]], refusals: Mapping[str, list[RefusalT]]
) -> list[tuple[str, list[RefusalT]]]:
    """Append the refusals to the coordinator's results by topic. Returns the refusals of topics without results."""
    by_name = {topic.name: topic for topic in answered}
    others = []
    for name, refused in refusals.items():
        if name in by_name:
            by_name[name].partitions += refused
        else:
            others.append((name, refused))
    return others
