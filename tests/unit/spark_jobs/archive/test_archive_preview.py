"""The lines of a dry run."""

from __future__ import annotations

import pytest

from odradek.protocol.topic_partition import TopicPartition
from spark_jobs.archive.archive_preview import preview
from spark_jobs.common.cluster import LogRange

RANGES = {TopicPartition("a", 0): LogRange(10, 40), TopicPartition("a", 1): LogRange(0, 0)}


@pytest.mark.parametrize(
    ("planned", "starting_offsets", "lines", "total"),
    [
        ({}, "earliest", ["a:0: offsets 10 to 39", "a:1: nothing new"], 30),
        ({}, "latest", ["a:0: nothing new", "a:1: nothing new"], 0),
        ({}, '{"a": {"0": 25, "1": -1}}', ["a:0: offsets 25 to 39", "a:1: nothing new"], 15),
        ({}, '{"a": {"0": -2, "1": -2}}', ["a:0: offsets 10 to 39", "a:1: nothing new"], 30),
        ({"a": {"0": 39}}, "earliest", ["a:0: offsets 39 to 39", "a:1: nothing new"], 1),
        ({"a": {"0": 5}}, "latest", ["a:0: offsets 10 to 39", "a:1: nothing new"], 30),
        ({"a": {"0": 40}}, "earliest", ["a:0: nothing new", "a:1: nothing new"], 0),
    ],
)
def test_a_preview_begins_where_a_run_would(
    planned: dict[str, dict[str, int]], starting_offsets: str, lines: list[str], total: int
) -> None:
    last = f"dry run, nothing was written: {total} offsets to archive"
    assert preview(RANGES, planned, starting_offsets) == [*lines, last]
