"""What a dry run of `archive_topic` prints: the records of each partition that the next run would archive."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from spark_jobs.common.options import EARLIEST, EARLIEST_OFFSET, LATEST, LATEST_OFFSET

if TYPE_CHECKING:
    from odradek.protocol.topic_partition import TopicPartition
    from spark_jobs.common.cluster import LogRange


def preview(
    ranges: Mapping[TopicPartition, LogRange], planned: Mapping[str, Mapping[str, int]], starting_offsets: str
) -> list[str]:
    """A line for each partition, and one for all.

    `ranges`: what the logs hold, from the starting timestamp on if there is one; `planned`: the ends in the checkpoint.
    """
    lines = []
    total = 0
    for (topic, partition), held in sorted(ranges.items()):
        begin = max(held.begin, _begin(planned, starting_offsets, topic, partition, held))
        total += max(0, held.end - begin)
        if begin < held.end:
            lines.append(f"{topic}:{partition}: offsets {begin} to {held.end - 1}")
        else:
            lines.append(f"{topic}:{partition}: nothing new")
    return [*lines, f"dry run, nothing was written: {total} offsets to archive"]


def _begin(
    planned: Mapping[str, Mapping[str, int]], starting_offsets: str, topic: str, partition: int, held: LogRange
) -> int:
    """Where a run begins in a partition: a checkpoint counts more than the options, and knows no new partition."""
    if planned:
        return planned.get(topic, {}).get(str(partition), held.begin)
    if starting_offsets in (EARLIEST, LATEST):
        return held.begin if starting_offsets == EARLIEST else held.end
    named: int = json.loads(starting_offsets).get(topic, {}).get(str(partition), EARLIEST_OFFSET)
    return {EARLIEST_OFFSET: held.begin, LATEST_OFFSET: held.end}.get(named, named)
