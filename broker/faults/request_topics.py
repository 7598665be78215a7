"""The topics and partitions that a request names, found by the schema of its API.

A list of a request whose name has "topic" in it is one of topics: of names, or of structs with a name or an id; in it,
a list is one of partitions if it is one of indexes, or of structs with an index. That holds for every API of Kafka
except those whose requests name topics as resources of a config, where no rule looks for topics.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeVar, cast

from odradek.protocol.codec.primitives import ZERO_UUID
from odradek.protocol.codec.schema import Kind, Primitive, Struct

StructT = TypeVar("StructT", bound=Struct)
TopicName = Callable[[bytes], str | None]
"""The name of a topic by its id."""

Keep = Callable[[str, int | None], bool]
"""Whether a topic, or a partition of it, is kept."""

NAMES: Final = ("name", "topic", "topic_name")
INDEXES: Final = ("partition_index", "index", "partition", "partition_id")
_NO_LISTS: Final = frozenset({"forgotten_topics_data"})


def topic_of(entry: Struct, topic_name: TopicName) -> str | None:
    """The topic that the entry of a list stands for; None: it has no name, or an id that no topic has."""
    for name in NAMES:
        value = getattr(entry, name, None)
        if isinstance(value, str) and value:
            return value
    topic_id = getattr(entry, "topic_id", None)
    return topic_name(topic_id) if isinstance(topic_id, bytes) and topic_id != ZERO_UUID else None


def index_of(entry: Struct) -> int | None:
    """The partition that the entry of a list stands for."""
    for name in INDEXES:
        value = getattr(entry, name, None)
        if isinstance(value, int):
            return value
    return None


def topics_of(request: Struct, topic_name: TopicName) -> Iterator[tuple[str, int | None]]:
    """Each partition that the request names, or each topic (with None) where it names no partitions."""
    for field in request.FIELDS:
        if field.kind is not Kind.ARRAY or field.name in _NO_LISTS:
            continue
        values = getattr(request, field.name)
        if not values:
            continue
        if "topic" in field.name:
            yield from _entries(values, topic_name)
        elif isinstance(values[0], Struct):
            for value in values:
                yield from topics_of(value, topic_name)


def means_all_topics(request: Struct, version: int) -> bool:
    """The request has a list of topics that is null, or has none in the version in which that means all of them."""
    for field in request.FIELDS:
        if field.kind is Kind.ARRAY and field.versions.covers(version):
            values = getattr(request, field.name)
            if "topic" in field.name:
                if values is None or (not values and version == 0 and type(request).__name__ == "MetadataRequest"):
                    return True
            elif values and isinstance(values[0], Struct) and any(means_all_topics(v, version) for v in values):
                return True
    return False


def select(request: StructT, keep: Keep, topic_name: TopicName) -> tuple[StructT, int]:
    """A copy of the request with the topics and partitions that are kept, and their number. It shares the entries."""
    copy, kept = copy_struct(request), 0
    for field in request.FIELDS:
        if field.kind is not Kind.ARRAY or field.name in _NO_LISTS:
            continue
        values = getattr(request, field.name)
        if not values:
            continue
        if "topic" in field.name:
            chosen, count = _select_entries(values, keep, topic_name)
        elif isinstance(values[0], Struct):
            chosen, count = [], 0
            for value in values:
                part, found = select(value, keep, topic_name)
                if found:
                    chosen.append(part)
                    count += found
            if not count and not any(True for value in values for _ in topics_of(value, topic_name)):
                continue  # a list that has nothing to do with topics
        else:
            continue
        setattr(copy, field.name, chosen)
        kept += count
    return copy, kept


def _entries(values: list[object], topic_name: TopicName) -> Iterator[tuple[str, int | None]]:
    for value in values:
        topic = value if isinstance(value, str) else topic_of(cast("Struct", value), topic_name)
        if topic is None:
            continue
        name = None if isinstance(value, str) else _partitions_field(cast("Struct", value))
        if name is None:
            yield topic, None if isinstance(value, str) else index_of(cast("Struct", value))
            continue
        for part in getattr(value, name) or ():
            yield topic, part if isinstance(part, int) else index_of(part)


def _select_entries(values: list[object], keep: Keep, topic_name: TopicName) -> tuple[list[object], int]:
    chosen: list[object] = []
    count = 0
    for value in values:
        topic = value if isinstance(value, str) else topic_of(cast("Struct", value), topic_name)
        name = None if isinstance(value, str) else _partitions_field(cast("Struct", value))
        if name is None:
            if keep(topic or "", None):
                chosen.append(value)
                count += 1
            continue
        parts = [
            part
            for part in getattr(value, name) or ()
            if keep(topic or "", part if isinstance(part, int) else index_of(part))
        ]
        if parts:
            copy = copy_struct(cast("Struct", value))
            setattr(copy, name, parts)
            chosen.append(copy)
            count += len(parts)
    return chosen, count


def _partitions_field(entry: Struct) -> str | None:
    """The field of the entry with its partitions."""
    for field in entry.FIELDS:
        if field.kind is Kind.ARRAY and "partition" in field.name:
            element = field.element
            if element is not None and (isinstance(element, Primitive) or _has_index(element)):
                return field.name
    return None


def _has_index(element: object) -> bool:
    return any(field.name in INDEXES for field in cast("type[Struct]", element).FIELDS)


def copy_struct(value: StructT) -> StructT:
    """A copy that shares the values of its fields."""
    copy = type(value)()
    for field in value.FIELDS:
        setattr(copy, field.name, getattr(value, field.name))
    copy.unknown_tagged_fields = value.unknown_tagged_fields  # type: ignore[misc]
    return copy
