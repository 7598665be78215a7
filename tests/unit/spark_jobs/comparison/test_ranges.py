from __future__ import annotations

import json

import pytest

from spark_jobs.common.cluster import LogRange
from spark_jobs.comparison.ranges import BadRange, TopicRange, pinned, spark_offsets

FOUND = {0: LogRange(5, 25), 1: LogRange(0, 0), 2: LogRange(7, 9)}


def offsets(begin: str, end: str) -> list[tuple[int, int]]:
    return [(each.begin, each.end) for each in pinned("t", FOUND, begin, end).partitions.values()]


def test_a_topic_is_pinned_from_its_beginning_to_its_end() -> None:
    assert offsets("earliest", "latest") == [(5, 25), (0, 0), (7, 9)]
    assert offsets("latest", "latest") == [(25, 25), (0, 0), (9, 9)]


@pytest.mark.parametrize(
    ("begin", "end", "expected"),
    [
        ({"t": {"0": 10, "2": -1}}, {"t": {"0": 20}}, [(10, 20), (0, 0), (9, 9)]),
        ({"t": {"0": -2}}, {"t": {"0": -1}}, [(5, 25), (0, 0), (7, 9)]),
        # What is not there any more, or not yet, is not read.
        ({"t": {"0": 1}}, {"t": {"0": 99}}, [(5, 25), (0, 0), (7, 9)]),
        ({"t": {"0": 20}}, {"t": {"0": 10}}, [(10, 10), (0, 0), (7, 9)]),
        ({"other": {"0": 20}}, {"other": {"9": 10}}, [(5, 25), (0, 0), (7, 9)]),
    ],
)
def test_offsets_that_are_named_are_taken_within_what_is_there(
    begin: dict[str, dict[str, int]], end: dict[str, dict[str, int]], expected: list[tuple[int, int]]
) -> None:
    assert offsets(json.dumps(begin), json.dumps(end)) == expected


def test_a_partition_that_is_not_there_is_refused() -> None:
    with pytest.raises(BadRange, match="t has no partition 3"):
        offsets('{"t": {"3": 1}}', "latest")


def test_spark_gets_every_partition() -> None:
    ranges = [pinned("t", FOUND, "earliest", "latest"), pinned("u", {0: LogRange(1, 2)}, "earliest", "latest")]
    begins, ends = spark_offsets(ranges)
    assert json.loads(begins) == {"t": {"0": 5, "1": 0, "2": 7}, "u": {"0": 1}}
    assert json.loads(ends) == {"t": {"0": 25, "1": 0, "2": 9}, "u": {"0": 2}}


def test_a_range_is_one_line_also_of_a_wide_topic() -> None:
    assert pinned("t", FOUND, "earliest", "latest").line() == "t 0:5-25 1:0-0 2:7-9"
    wide = TopicRange(topic="wide", partitions={number: LogRange(0, 10) for number in range(9)})
    assert wide.line() == "wide: 9 partitions, 90 offsets"
