"""Error codes and throttle times in any response, found by its schema.

A *place* is a field named `error_code` (or as in `_CODES`) of the response or of an entry of its lists. In a response
with places at several levels, the code is put where Kafka's handlers put the error of one entity: into the partitions,
else into the entries, else into the response itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeVar, cast

from odradek.broker.faults.request_topics import NAMES, Keep, TopicName, copy_struct, index_of, topic_of
from odradek.broker.faults.rules.rules import Level
from odradek.protocol.codec.schema import Kind, Response, Struct
from odradek.protocol.errors import ErrorCode

ResponseT = TypeVar("ResponseT", bound=Struct)

_CODES: Final = ("error_code", "partition_error_code")

_ENTITIES: Final = (*NAMES, "topic_id", "group_id", "transactional_id", "producer_id", "log_dir", "key")
"""Fields that say which entity an entry stands for."""


def levels(response_type: type[Struct], version: int, depth: int = 0) -> frozenset[Level]:
    """The levels at which the response of this version has error codes."""
    found: set[Level] = set()
    for field in response_type.FIELDS:
        if not field.versions.covers(version):
            continue
        if field.name in _CODES:
            found.add(_level(response_type, depth))
        elif field.kind in (Kind.ARRAY, Kind.STRUCT) and isinstance(field.element, type):
            found |= levels(cast("type[Struct]", field.element), version, depth + 1)
    return frozenset(found)


def deepest(found: frozenset[Level]) -> Level | None:
    for level in (Level.PARTITION, Level.ENTRY, Level.TOP):
        if level in found:
            return level
    return None


def copied(response: ResponseT) -> ResponseT:
    """A copy down to the last struct, with lists as arrays: handlers put structs of the broker's caches into their
    answers, and arrays whose elements are made each time they are read.
    """
    copy = copy_struct(response)
    for field in copy.FIELDS:
        value = getattr(copy, field.name)
        if isinstance(value, Struct):
            setattr(copy, field.name, copied(value))
        elif field.kind is Kind.ARRAY and value is not None:
            setattr(copy, field.name, [copied(each) if isinstance(each, Struct) else each for each in value])
    return copy


def set_errors(
    response: Response,
    version: int,
    code: ErrorCode,
    at: Level,
    keep: Keep | None,
    topic_name: TopicName,
    message: str | None = None,
) -> int:
    """Put the code into all places of the level whose topic and partition are kept. Returns their number.

    An entry with an error has no records and no leader, as in Kafka.
    """
    changed = 0
    for entry, level, topic in _places(response, version, 0, None, topic_name):
        if level is not at or (keep is not None and level is not Level.TOP and not _is_kept(entry, topic, keep)):
            continue
        for field in entry.FIELDS:
            if not field.versions.covers(version):
                continue
            if field.name in _CODES:
                setattr(entry, field.name, int(code))
                changed += 1
            elif field.name == "error_message" and message is not None:
                setattr(entry, field.name, message)
            elif code is not ErrorCode.NONE and level is Level.PARTITION:
                _set_failed(entry, field.name, field.kind, code)
    return changed


def set_throttle_time(response: Response, version: int, ms: int) -> bool:
    """Whether the response has the field in this version."""
    for field in response.FIELDS:
        if field.name == "throttle_time_ms" and field.versions.covers(version):
            setattr(response, field.name, ms)
            return True
    return False


def merge(into: Struct, other: Struct) -> None:
    """Add the entries of the other response to those of this one; entries of the same entity become one."""
    for field in into.FIELDS:
        if field.kind is not Kind.ARRAY:
            continue
        mine, theirs = getattr(into, field.name), getattr(other, field.name)
        if not theirs:
            continue
        if not mine or not isinstance(theirs[0], Struct):
            setattr(into, field.name, [*(mine or ()), *theirs])
            continue
        known = {_entity(entry): entry for entry in mine if _entity(entry)}
        for entry in theirs:
            same = known.get(_entity(entry))
            if same is None:
                mine.append(entry)
            else:
                merge(same, entry)


def _places(
    value: Struct, version: int, depth: int, topic: str | None, topic_name: TopicName
) -> Iterator[tuple[Struct, Level, str | None]]:
    """Each struct with an error code, its level and the topic that it belongs to."""
    has_code = False
    lists = []
    for field in value.FIELDS:
        if field.versions.covers(version):
            if field.name in _CODES:
                has_code = True
            elif field.kind in (Kind.ARRAY, Kind.STRUCT) and isinstance(field.element, type):
                lists.append(field.name)
    if depth and topic is None:
        topic = topic_of(value, topic_name)
    if has_code:
        yield value, _level(type(value), depth), topic
    for name in lists:
        inner = getattr(value, name)
        for entry in (inner,) if isinstance(inner, Struct) else inner or ():
            yield from _places(entry, version, depth + 1, topic, topic_name)


def _level(kind: type[Struct], depth: int) -> Level:
    if not depth:
        return Level.TOP
    names = {field.name for field in kind.FIELDS}
    return Level.PARTITION if names & {"partition_index", "index", "partition", "partition_id"} else Level.ENTRY


def _is_kept(entry: Struct, topic: str | None, keep: Keep) -> bool:
    return topic is not None and keep(topic, index_of(entry))


def _set_failed(entry: Struct, name: str, kind: Kind, code: ErrorCode) -> None:
    if kind is Kind.RECORDS:
        setattr(entry, name, b"")
    elif name == "leader_id" and code is ErrorCode.LEADER_NOT_AVAILABLE:
        setattr(entry, name, -1)


def _entity(entry: Struct) -> tuple[object, ...]:
    return tuple(getattr(entry, name) for name in _ENTITIES if hasattr(entry, name))
