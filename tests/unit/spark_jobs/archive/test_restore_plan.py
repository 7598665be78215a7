"""The mapping of a restore, the topics it needs, and the text of its progress."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from spark_jobs.archive.restore_plan import (
    MAX_POSITIONS_BYTES,
    Overlap,
    Place,
    PlaceMapping,
    TimeRange,
    check_overlaps,
    config_warnings,
    missing_topics,
    partitions_needed,
    positions_of,
    positions_text,
)
from spark_jobs.common.job import JobError

DAY_MS = 86_400_000
ALL = TimeRange()


def test_a_mapping_keeps_what_it_does_not_name() -> None:
    mapping = PlaceMapping(topics={"a": "b"}, partitions={(None, 0): 5, ("a", 0): 7, ("c", 1): 2})
    assert mapping.target(Place("a", 0)) == Place("b", 7)
    assert mapping.target(Place("c", 0)) == Place("c", 5)
    assert mapping.target(Place("c", 1)) == Place("c", 2)
    assert mapping.target(Place("d", 1)) == Place("d", 1)


def test_topics_that_are_not_there_are_named_and_those_too_small_refused() -> None:
    needed = partitions_needed([Place("a", 2), Place("a", 0), Place("b", 0)])
    assert needed == {"a": 3, "b": 1}
    assert missing_topics(needed, {"a": 3}) == {"b": 1}
    with pytest.raises(JobError, match=r"the topic a has 2 partitions and the restore needs 3: add partitions, or map"):
        missing_topics(needed, {"a": 2})


def test_records_of_two_topics_of_one_name_are_refused_with_the_times_between_which_to_choose() -> None:
    check_overlaps("./archive", [])
    one = Overlap(
        place=Place("a", 1), offsets=3, first_offset=5, last_offset=9, older_until_ms=59_000, newer_from_ms=61_000
    )
    with pytest.raises(JobError) as refused:
        check_overlaps("./archive", [one])
    assert str(refused.value) == (
        "./archive has different records with the same offset, 3 of them in a:1 (offsets 5 to 9): the topic was "
        "deleted and created again. Choose the newer one with --starting-timestamp, or the older one with "
        "--ending-timestamp: the time at which it was created again. At these offsets, the older records are of "
        "1970-01-01 00:00:59 at the latest, the newer ones of 1970-01-01 00:01:01 at the earliest"
    )
    with pytest.raises(JobError, match=r"in a:0 \(offsets 5 to 9\), and in 1 more partitions: the topic was deleted"):
        check_overlaps("./archive", [one, replace(one, place=Place("a", 0))])


@pytest.mark.parametrize(
    ("configs", "lines"),
    [
        ({"retention.ms": "-1", "message.timestamp.type": "CreateTime"}, 0),
        ({"retention.ms": str(DAY_MS), "cleanup.policy": "delete"}, 1),
        ({"retention.ms": str(3 * DAY_MS), "cleanup.policy": "delete"}, 0),
        ({"retention.ms": str(DAY_MS), "cleanup.policy": "compact"}, 0),
        ({"retention.ms": str(DAY_MS), "cleanup.policy": "compact,delete"}, 1),
        ({"message.timestamp.type": "LogAppendTime"}, 1),
        ({}, 0),
    ],
)
def test_configs_that_change_restored_records_are_named(configs: dict[str, str], lines: int) -> None:
    assert len(config_warnings("a", configs, first_ms=0, now_ms=2 * DAY_MS)) == lines


def test_progress_is_text_and_back() -> None:
    positions = {Place("b.c-d_e", 10): 5, Place("a", 0): 0}
    assert positions_text(positions, ALL) == "a:0:0,b.c-d_e:10:5"
    assert positions_of(positions_text(positions, ALL), "g", ALL) == positions
    assert positions_of("", "g", ALL) == {}


LATER = TimeRange(starting_timestamp_ms=5)
WITHIN = TimeRange(starting_timestamp_ms=-1, ending_timestamp_ms=DAY_MS)


@pytest.mark.parametrize("times", [ALL, LATER, TimeRange(ending_timestamp_ms=5), WITHIN])
def test_progress_is_that_of_its_times(times: TimeRange) -> None:
    text = positions_text({Place("a", 0): 1_000}, times)
    assert positions_of(text, "g", times) == {Place("a", 0): 1_000}
    assert positions_of("", "g", times) == {}


@pytest.mark.parametrize(
    ("stored", "asked", "named"),
    [
        (LATER, ALL, "--starting-timestamp 5"),
        (ALL, LATER, "all times"),
        (WITHIN, LATER, "--starting-timestamp -1 --ending-timestamp 86400000"),
        (LATER, TimeRange(ending_timestamp_ms=5), "--starting-timestamp 5"),
    ],
)
def test_records_of_other_times_are_not_taken_for_restored(stored: TimeRange, asked: TimeRange, named: str) -> None:
    text = positions_text({Place("a", 0): 1_000}, stored)
    message = f"the group g holds the progress of a restore of other times ({named}): go on with those, or give another"
    with pytest.raises(JobError, match=re.escape(message)):
        positions_of(text, "g", asked)


def test_progress_fits_into_the_metadata_of_an_offset() -> None:
    with pytest.raises(JobError, match=r"400 partitions are mapped to one"):
        positions_text({Place("a-topic", partition): 10**6 for partition in range(400)}, ALL)
    text = positions_text({Place("a-topic", partition): 10**6 for partition in range(200)}, ALL)
    assert len(text) < MAX_POSITIONS_BYTES


@pytest.mark.parametrize("text", ["canary", "a:b", "a:b:1", "a:0:-1", "a:0:1:2", "starting-timestamp=5,a:b:1"])
def test_offsets_of_another_kind_of_group_are_refused(text: str) -> None:
    with pytest.raises(JobError, match=r"the committed offsets of the group g are not those of a restore"):
        positions_of(text, "g", ALL)
