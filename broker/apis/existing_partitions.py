"""Requests that name partitions by topic: which of them exist. The coordinator is asked about those alone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar

if TYPE_CHECKING:
    from odradek.broker.services import Services


class NamedPartition(Protocol):
    @property
    def partition_index(self) -> int: ...


PartitionT_co = TypeVar("PartitionT_co", bound=NamedPartition, covariant=True)


class NamedTopic(Protocol[PartitionT_co]):
    @property
    def name(self) -> str: ...

    @property
    def partitions(self) -> Sequence[PartitionT_co]: ...


def split_by_existence(
    broker: Services, topics: Iterable[NamedTopic[PartitionT_co]]
) -> tuple[list[tuple[str, list[PartitionT_co]]], dict[str, list[int]]]:
    """(topic, its partitions that exist) in the order of the request, and the indexes of the others by topic."""
    existing: list[tuple[str, list[PartitionT_co]]] = []
    missing: dict[str, list[int]] = {}
    for topic in topics:
        states = broker.metadata_cache.snapshot.partitions.get(topic.name, {})
        found = [part for part in topic.partitions if part.partition_index in states]
        lost = [part.partition_index for part in topic.partitions if part.partition_index not in states]
        if found:
            existing.append((topic.name, found))
        if lost:
            missing.setdefault(topic.name, []).extend(lost)
    return existing, missing
