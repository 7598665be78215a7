"""OffsetCommit and OffsetFetch version 0: offsets in ZooKeeper, where consumers kept them before 0.9.

No group state is involved: every client may write any group's offsets, and nothing is loaded, expired or tombstoned.

A request of one megabyte may name 260,000 partitions. So `AT_ONCE` znodes are read or written at a time, and what was
found is kept as numbers until the response is encoded.

Kafka: KafkaApis.commitOffsetsToZookeeper, KafkaApis.handleOffsetFetchRequestFromZookeeper.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Final, NamedTuple

from odradek.coordinator.group.group_metadata_manager import OFFSETS_A_STEP
from odradek.coordinator.group.offsets.offset_api import (
    INVALID_OFFSET,
    NO_METADATA,
    Outcome,
)
from odradek.coordinator.group.state.group_offsets import OffsetAndMetadata
from odradek.coordinator.ports import ConsumerOffsetTree, Respond
from odradek.protocol.codec.arrays.mapped import Mapped
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.offset_fetch import (
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponsePartition,
    OffsetFetchResponseTopic,
)
from odradek.protocol.topic_partition import TopicPartition
from odradek.timer.repeated_items import repeated
from odradek.timer.sliced_work import Steps

_NAME: Final = attrgetter("name")

AT_ONCE: Final = 64
"""Operations on the tree of one request: each is a task, with 2 KB."""


def _some_at_once(keys: Iterable[TopicPartition], begin: Callable[[TopicPartition, Callable[[], None]], None]) -> None:
    """Begin an operation for each key, `AT_ONCE` at a time. An operation tells that it has ended, now or later."""
    left = iter(keys)
    under_way = 0
    is_beginning = False

    def begin_some() -> None:
        nonlocal under_way, is_beginning
        is_beginning = True
        while under_way < AT_ONCE and (key := next(left, None)) is not None:
            under_way += 1
            begin(key, ended)
        is_beginning = False

    def ended() -> None:
        nonlocal under_way
        under_way -= 1
        if not is_beginning:  # else the loop above goes on
            begin_some()

    begin_some()


def commit_to_tree(
    tree: ConsumerOffsetTree,
    group_id: str,
    offsets: Mapping[TopicPartition, OffsetAndMetadata],
    refused: Outcome,
    respond: Respond[Outcome],
) -> Steps:
    """Write each offset to its znode, and respond when all are written. The metadata has no place there."""
    outcome: dict[TopicPartition, ErrorCode] = dict.fromkeys(offsets, ErrorCode.NONE) | dict(refused)
    waiting = set(offsets) - set(refused)

    def finish() -> None:
        if not waiting:
            respond(outcome)

    def written(topic_partition: TopicPartition, ended: Callable[[], None], error: ErrorCode) -> None:
        outcome[topic_partition] = error
        waiting.discard(topic_partition)
        finish()
        ended()

    def write(topic_partition: TopicPartition, ended: Callable[[], None]) -> None:
        offset = offsets[topic_partition].offset
        tree.set_or_create(group_id, topic_partition, offset, partial(written, topic_partition, ended))

    yield None
    if waiting:
        _some_at_once(list(waiting), write)
    else:
        finish()


class _Found:
    """The offsets and errors of the partitions of one request, by their places."""

    def __init__(self, requested: _Requested) -> None:
        self._requested = requested
        self.left = len(requested.indexes)
        self._offsets = array("q", [INVALID_OFFSET]) * self.left
        self._errors = array("h", [ErrorCode.NONE]) * self.left

    def put(self, place: int, error: ErrorCode, offset: int | None) -> None:
        """In version 0 a partition without an offset is UNKNOWN_TOPIC_OR_PARTITION."""
        self.left -= 1
        if offset is not None:
            self._offsets[place] = offset
        elif error == ErrorCode.NONE:
            error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        self._errors[place] = error

    def response(self) -> OffsetFetchResponse:
        return OffsetFetchResponse(topics=Mapped(self._topic, self._requested.topics))

    def _topic(self, topic: _Topic) -> OffsetFetchResponseTopic:
        return OffsetFetchResponseTopic(name=topic.name, partitions=Mapped(self._partition, topic.places))

    def _partition(self, place: int) -> OffsetFetchResponsePartition:
        return OffsetFetchResponsePartition(
            partition_index=self._requested.indexes[place],
            committed_offset=self._offsets[place],
            metadata=NO_METADATA,
            error_code=self._errors[place],
        )


class _Topic(NamedTuple):
    name: str
    first: int
    """The place of its first partition among all; those of the others follow."""
    size: int

    @property
    def places(self) -> range:
        return range(self.first, self.first + self.size)


class _Requested(NamedTuple):
    """The partitions of a request, each once."""

    topics: list[_Topic]
    indexes: array[int]
    """Of each partition, at its place."""


def fetch_from_tree(
    tree: ConsumerOffsetTree, group: OffsetFetchRequestGroup, respond: Respond[OffsetFetchResponse]
) -> Steps:
    """Read each offset from its znode, and respond when all are read."""
    requested = yield from _requested(group.topics or [])
    found = _Found(requested)
    places = (place for topic in requested.topics for place in topic.places)

    def read(place: int, ended: Callable[[], None], error: ErrorCode, offset: int | None) -> None:
        found.put(place, error, offset)
        if not found.left:
            respond(found.response())
        ended()

    def begin(topic_partition: TopicPartition, ended: Callable[[], None]) -> None:
        tree.get(group.group_id, topic_partition, partial(read, next(places), ended))

    if found.left:
        _some_at_once(_partitions(requested), begin)
    else:
        respond(found.response())


def _partitions(requested: _Requested) -> Iterator[TopicPartition]:
    topics, indexes = requested
    return (TopicPartition(topic.name, indexes[place]) for topic in topics for place in topic.places)


def _requested(topics: Sequence[OffsetFetchRequestTopics]) -> Generator[None, None, _Requested]:
    """The topics in the order of their first mentions, and so their partitions; in steps."""
    twice = yield from repeated(Mapped(_NAME, topics))
    several: dict[str, dict[int, None]] = {}
    found: list[_Topic] = []
    all_indexes = array("i")
    for topic in topics:
        yield
        name = topic.name
        if not topic.partition_indexes:  # as in Apache Kafka, a topic without partitions is not answered
            continue
        indexes = several.get(name, {})
        for number, index in enumerate(topic.partition_indexes, 1):
            indexes[index] = None
            if number % OFFSETS_A_STEP == 0:
                yield
        if name not in several:
            found.append(_Topic(name, len(all_indexes), len(indexes)))
        if name in twice:
            several[name] = indexes
        else:
            all_indexes.extend(indexes)
    for number, (name, _, _) in enumerate(found if several else ()):
        if name in several:
            found[number] = _Topic(name, len(all_indexes), len(several[name]))
            all_indexes.extend(several.pop(name))
        yield
    return _Requested(found, all_indexes)
