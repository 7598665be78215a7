"""The ranges of offsets that are compared, pinned before the first record is read.

Topics may go on growing: what comes after the pinned ends is in no side of the comparison.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from spark_jobs.common.cluster import LogRange

EARLIEST = "earliest"
LATEST = "latest"
NAMED_OFFSETS = {-2: EARLIEST, -1: LATEST}


class BadRange(ValueError):
    """A range that the topic does not have; the message is one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicRange:
    """One topic: of each partition, the offsets from `begin` up to, not including, `end`."""

    topic: str
    partitions: Mapping[int, LogRange]

    @property
    def offsets(self) -> int:
        """How many offsets that are; compaction and transactions leave some of them without a record."""
        return sum(bounds.end - bounds.begin for bounds in self.partitions.values())

    def line(self) -> str:
        """For the terminal: `events 0:0-400 1:0-380`, of wide topics only how wide they are."""
        if len(self.partitions) > SHOWN_PARTITIONS:
            return f"{self.topic}: {len(self.partitions)} partitions, {self.offsets} offsets"
        shown = (f"{partition}:{bounds.begin}-{bounds.end}" for partition, bounds in sorted(self.partitions.items()))
        return " ".join([self.topic, *shown])


SHOWN_PARTITIONS = 8


def pinned(topic: str, found: Mapping[int, LogRange], begin: str, end: str) -> TopicRange:
    """The range of a topic from the options of the command line, within what is there.

    `begin` and `end`: `earliest`, `latest`, or JSON that names this topic's partitions; partitions that it does not
    name begin and end with the topic. Raises: BadRange if it names a partition that is not there.
    """
    begins, ends = _chosen(topic, found, begin), _chosen(topic, found, end)
    partitions: dict[int, LogRange] = {}
    for partition, bounds in sorted(found.items()):
        first = begins.get(partition, bounds.begin if begin != LATEST else bounds.end)
        last = ends.get(partition, bounds.end if end != EARLIEST else bounds.begin)
        first, last = _within(bounds, first), _within(bounds, last)
        partitions[partition] = LogRange(min(first, last), last)
    return TopicRange(topic=topic, partitions=partitions)


def _chosen(topic: str, found: Mapping[int, LogRange], text: str) -> dict[int, int]:
    """The offsets that JSON names for a topic; -2 is the first one there, -1 the end."""
    if text in (EARLIEST, LATEST):
        return {}
    chosen: dict[int, int] = {}
    for name, offset in json.loads(text).get(topic, {}).items():
        partition = int(name)
        if partition not in found:
            raise BadRange(f"{topic} has no partition {partition}")
        bounds = found[partition]
        chosen[partition] = {-2: bounds.begin, -1: bounds.end}.get(offset, offset)
    return chosen


def _within(bounds: LogRange, offset: int) -> int:
    return max(bounds.begin, min(offset, bounds.end))


def spark_offsets(ranges: Iterable[TopicRange]) -> tuple[str, str]:
    """The options startingOffsets and endingOffsets of Spark's kafka source: every partition of every topic."""
    begins: dict[str, dict[str, int]] = {}
    ends: dict[str, dict[str, int]] = {}
    for each in ranges:
        begins[each.topic] = {str(partition): bounds.begin for partition, bounds in each.partitions.items()}
        ends[each.topic] = {str(partition): bounds.end for partition, bounds in each.partitions.items()}
    return json.dumps(begins), json.dumps(ends)
