"""The lines of restore_topic, and what it does with the topics before it writes."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, cast

import pytest

from spark_jobs import restore_topic
from spark_jobs.archive.restore_options import parse_options
from spark_jobs.archive.restore_plan import Archived, Overlap, Place
from spark_jobs.archive.restore_writer import Written
from spark_jobs.common.job import JobError
from spark_jobs.common.streaming_run import StopRequest
from spark_jobs.restore_topic import end_line, plan_line, prepare_topics, progress_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ARCHIVED = Archived(
    place=Place("a", 0), records=3, offsets=3, first_offset=5, last_offset=9, first_ms=0, last_ms=61_500
)


def test_a_plan_says_what_is_written_where() -> None:
    line = "a:0 to b:1: 3 records, offsets 5 to 9, 1970-01-01 00:00:00 to 1970-01-01 00:01:01"
    assert plan_line(ARCHIVED, Place("b", 1), {}) == line
    done = {Place("b", 1): {Place("a", 0): 8}}
    assert plan_line(ARCHIVED, Place("b", 1), done) == f"{line}, restored up to offset 7 already"


def test_a_time_that_python_has_not_is_shown_in_ms() -> None:
    archived = dataclasses.replace(ARCHIVED, last_ms=1_700_000_000_000_000)
    line = plan_line(archived, Place("b", 1), {})
    assert line.endswith("1970-01-01 00:00:00 to 1700000000000000 ms")


def test_progress_shows_a_few_partitions() -> None:
    assert progress_line({Place("b", 1): {}}) == "restoring the first batch"
    done = {Place("b", number): {Place("a", number): number} for number in range(10)}
    shown = " ".join(f"a:{number}:{number}" for number in range(8))
    assert progress_line(done) == f"restored up to {shown} and 2 more"


def test_the_end_counts_what_was_there() -> None:
    assert end_line([Written("b", 1, 1, 1)], [ARCHIVED], {}) == "done: 2 records restored, 1 were there before"
    stopped = end_line(None, [ARCHIVED], {Place("b", 1): {Place("a", 0): 8}})
    assert stopped == "stopped: restored up to a:0:8; start it again to go on"


class FakeCluster:
    """A cluster with one topic."""

    def __init__(self, _: object) -> None: ...

    def partition_counts(self, _: object) -> dict[str, int]:
        return {"a": 1}

    def topic_configs(self, topics: list[str]) -> dict[str, dict[str, str]]:
        return {topic: {"retention.ms": "5", "cleanup.policy": "delete"} for topic in topics}


def test_topics_are_created_only_when_asked(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(restore_topic, "Cluster", FakeCluster)
    assert prepare_topics(parse_options(["--archive", "x"]), [ARCHIVED]) == {}
    assert capsys.readouterr().out == (
        "warning: a has retention.ms=5: the broker deletes restored records that are older\n"
    )
    renamed = ["--archive", "x", "--map-topic", "a=b"]
    with pytest.raises(JobError, match=r"^the topic b is not there: create it, or use --create-topic$"):
        prepare_topics(parse_options(renamed), [ARCHIVED])
    create = [*renamed, "--create-topic"]
    assert prepare_topics(parse_options(create), [ARCHIVED]) == {"b": 1}
    assert prepare_topics(parse_options([*create, "--partitions", "4"]), [ARCHIVED]) == {"b": 4}


@pytest.mark.parametrize(
    ("more", "calls"),
    [
        (["--exactly-once"], ["fence b:1", "read stable"]),
        ([], ["read stable"]),
        (["--exactly-once", "--dry-run"], ["read unstable"]),
    ],
)
def test_a_run_decides_what_a_killed_one_left_open_before_it_reads_the_progress(
    more: list[str], calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    class FakeProgress:
        def __init__(self, _: object, *, is_stable: bool) -> None:
            self._is_stable = is_stable

        def read(self, _: object) -> dict[Place, dict[Place, int]]:
            made.append("read stable" if self._is_stable else "read unstable")
            return {}

        def close(self) -> None: ...

    monkeypatch.setattr(restore_topic, "Progress", FakeProgress)
    monkeypatch.setattr(restore_topic, "fence", lambda _, targets: made.append(f"fence {targets[0]}"))
    assert restore_topic.progress_before(parse_options(["--archive", "x", *more]), [Place("b", 1)]) == {}
    assert made == calls


def test_a_stop_waits_until_the_progress_stands_still(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 0.0

    def sleep(seconds: float) -> None:
        nonlocal now_s
        now_s += seconds

    monkeypatch.setattr(restore_topic.time, "monotonic", lambda: now_s)
    monkeypatch.setattr(restore_topic.time, "sleep", sleep)
    found = iter([1, 2, 3, 3, 4])
    restore_topic.wait_until_quiet(lambda: next(found))
    assert (now_s, next(found)) == (3 * restore_topic.QUIET_S, 4)

    now_s = 0.0
    restore_topic.wait_until_quiet(lambda: now_s)  # it never stands still
    assert now_s == restore_topic.FINISHING_LIMIT_S


def test_an_archive_of_two_topics_of_one_name_is_refused_before_anything_is_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    overlap = Overlap(
        place=Place("a", 0), offsets=3, first_offset=5, last_offset=9, older_until_ms=1_000, newer_from_ms=61_000
    )
    monkeypatch.setattr(restore_topic, "read_archive", lambda *_, **__: None)
    monkeypatch.setattr(restore_topic, "summarized", lambda _: [ARCHIVED])
    monkeypatch.setattr(restore_topic, "overlaps_of", lambda *_: [overlap])
    monkeypatch.setattr(restore_topic, "Cluster", None)
    with pytest.raises(JobError, match=r"^x has different records with the same offset"):
        restore_topic.restore(cast("SparkSession", None), parse_options(["--archive", "x"]), StopRequest())
