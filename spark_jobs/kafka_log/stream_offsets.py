"""The offsets of a stream: where it begins, how far it can read now, and the tasks of a micro-batch.

The JSON of Spark's checkpoint is that of the kafka source: {"orders": {"0": 23, "1": 42}}, an offset being the next one
to read. A partition that comes later is read from its beginning. While this object lives, the end of a partition goes
back only if its log ends before it: a high watermark may go back for a moment, when its leader changes.

Kafka source: KafkaMicroBatchStream, KafkaOffsetReader.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeAlias

from spark_jobs.kafka_log.errors import report_loss
from spark_jobs.kafka_log.log_dirs import Replica, find_replicas
from spark_jobs.kafka_log.options import ReadOptions
from spark_jobs.kafka_log.planning import (
    Readable,
    SegmentTask,
    StreamProgress,
    boundary_offset,
    readable_now,
    segment_tasks,
)
from spark_jobs.kafka_log.segments import list_segments

TopicOffsets: TypeAlias = dict[str, dict[str, int]]
_Identity: TypeAlias = tuple[str, int, bytes | None]
"""Topic, partition and topic id: a topic that is deleted and made again is another one."""


class StreamOffsets:
    """The offsets of one stream. All methods raise KafkaLogError."""

    def __init__(self, options: ReadOptions) -> None:
        self._options = options
        self._progress: dict[_Identity, StreamProgress] = {}

    def initial(self) -> TopicOffsets:
        """Where a query begins that has no checkpoint: by startingOffset or startingTimestamp."""
        return _by_topic(
            (_identity(found.replica), min(boundary_offset(self._options.starting, found, self._options), found.end))
            for found in self._look(topics_must_exist=True)
        )

    def latest(self) -> TopicOffsets:
        """How far all partitions can be read now."""
        ends = {_identity(found.replica): found.end for found in self._look(topics_must_exist=False)}
        self._progress = {key: replace(self._progress[key], end=end) for key, end in ends.items()}
        return _by_topic(ends.items())

    def tasks(self, start: TopicOffsets, end: TopicOffsets) -> list[SegmentTask]:
        """The tasks of the micro-batch between two offsets."""
        tasks: list[SegmentTask] = []
        replicas = {
            (replica.topic, replica.partition): replica
            for replica in find_replicas(self._options, topics_must_exist=False)
        }
        begins = dict(_flat(start))
        for tp, last in _flat(end):
            first = begins.pop(tp, None)
            if first is not None and last < first:
                report_loss(f"{tp[0]}-{tp[1]}: its end went back from {first} to {last}", self._options)
            elif first != last:
                tasks += self._tasks_of(tp, replicas.get(tp), first, last)
        for (topic, partition), first in begins.items():
            report_loss(f"{topic}-{partition} is gone: what it had from offset {first} on is not read", self._options)
        return tasks

    def _tasks_of(
        self, tp: tuple[str, int], replica: Replica | None, first: int | None, last: int
    ) -> Iterator[SegmentTask]:
        """`first` None: the partition is new, and is read from its beginning."""
        listing = None if replica is None else list_segments(replica)
        if replica is None or listing is None:
            report_loss(f"{tp[0]}-{tp[1]} is gone: its offsets {first or 0} to {last - 1} are not read", self._options)
            return
        start = max(listing.first_offset or 0, replica.checkpointed_start)
        readable = Readable(replica, listing, start, last)
        yield from segment_tasks(readable, start if first is None else first, last, self._options)

    def _look(self, *, topics_must_exist: bool) -> Iterator[Readable]:
        for replica in find_replicas(self._options, topics_must_exist=topics_must_exist):
            progress = self._progress.setdefault(_identity(replica), StreamProgress())
            found = readable_now(replica, self._options, progress)
            if found is not None:
                yield found


def _identity(replica: Replica) -> _Identity:
    return replica.topic, replica.partition, replica.topic_id


def _by_topic(offsets: Iterable[tuple[_Identity, int]]) -> TopicOffsets:
    """In the order of the replicas, which is always the same: Spark compares texts to see whether there is news."""
    found: TopicOffsets = {}
    for (topic, partition, _), offset in offsets:
        found.setdefault(topic, {})[str(partition)] = offset
    return found


def _flat(offsets: TopicOffsets) -> Iterator[tuple[tuple[str, int], int]]:
    for topic, partitions in offsets.items():
        for partition, offset in partitions.items():
            yield (topic, int(partition)), offset
