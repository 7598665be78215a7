"""What a dry run of `archive_topic` prints: the records of each partition that the next run would archive."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from spark_jobs.common.options import EARLIEST, EARLIEST_OFFSET, LATEST, LATEST_OFFSET

if TYPE_CHECKING:
    from spark_jobs.common.cluster import LogRange


def preview(
    ranges: Mapping[tuple[str, int], LogRange], planned: Mapping[str, Mapping[str, int]], starting_offsets: str
) -> list[str]:
    """A line for each partition, and one for all.

    `ranges`: what the logs hold, from the starting timestamp on if there is one; `planned`: the ends in the checkpoint.
    """
    lines = []
    total = 0
    for (topic, partition), held in sorted(ranges.items()):
        start = max(held.start, _start(planned, starting_offsets, topic, partition, held))
        total += max(0, held.end - start)
        if start < held.end:
            lines.append(f"{topic}:{partition}: offsets {start} to {held.end - 1}")
        else:
            lines.append(f"{topic}:{partition}: nothing new")
    return [*lines, f"dry run, nothing was written: {total} offsets to archive"]


def _start(
    planned: Mapping[str, Mapping[str, int]], starting_offsets: str, topic: str, partition: int, held: LogRange
) -> int:
    """Where a run begins in a partition: a checkpoint counts more than the options, and knows no new partition."""
    if planned:
        return planned.get(topic, {}).get(str(partition), held.start)
    if starting_offsets in (EARLIEST, LATEST):
        return held.start if starting_offsets == EARLIEST else held.end
    named: int = json.loads(starting_offsets).get(topic, {}).get(str(partition), EARLIEST_OFFSET)
    return {EARLIEST_OFFSET: held.start, LATEST_OFFSET: held.end}.get(named, named)
