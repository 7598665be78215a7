"""What lag and its trend mean."""

from __future__ import annotations

import pytest

from spark_jobs.lag.trends import Sample, Trend
from spark_jobs.lag.verdicts import Limits, PartitionReport, Verdict, group_reports, partition_report

LIMITS = Limits(stalled_after_ms=60_000, tolerance=10)


def sample(lag: int | None, *, group: str = "g", partition: int = 0, members: int = 1) -> Sample:
    return Sample(1_000, group, "t", partition, None if lag is None else 100, 100 + (lag or 0), members)


def trend(slope: float | None, *, idle_ms: int = 0, explained: float | None = 1.0, samples: int = 5) -> Trend:
    return Trend("g", "t", 0, samples, idle_ms, slope, 1.0, 2.0, explained)


@pytest.mark.parametrize(
    ("lag", "found", "verdict"),
    [
        (None, trend(1.0), Verdict.UNKNOWN),
        (-1, trend(0.0), Verdict.BEYOND_END),
        (10, trend(0.0, idle_ms=60_000), Verdict.CAUGHT_UP),
        (11, trend(0.0, idle_ms=60_000), Verdict.STALLED),
        (11, trend(5.0, idle_ms=60_000), Verdict.STALLED),
        (11, trend(0.0, idle_ms=59_999), Verdict.STEADY),
        (11, trend(-5.0, idle_ms=60_000), Verdict.CATCHING_UP),
        (11, trend(5.0), Verdict.FALLING_BEHIND),
        (11, trend(5.0, explained=0.5), Verdict.FALLING_BEHIND),
        (11, trend(5.0, explained=0.49), Verdict.STEADY),
        (11, trend(5.0, samples=3), Verdict.FALLING_BEHIND),
        (11, trend(5.0, samples=2), Verdict.STEADY),
        (11, trend(1 / 3600), Verdict.FALLING_BEHIND),
        (11, trend(1 / 3601), Verdict.STEADY),
        (11, trend(-1e-12, idle_ms=60_000), Verdict.STALLED),
        (11, trend(None, explained=None), Verdict.STEADY),
        (11, None, Verdict.STEADY),
    ],
)
def test_verdict_of_a_partition(lag: int | None, found: Trend | None, verdict: Verdict) -> None:
    assert partition_report(sample(lag), found, LIMITS).verdict is verdict


def test_lag_that_falls_says_when_it_is_gone() -> None:
    assert partition_report(sample(600), trend(-5.0), LIMITS).catch_up_ms == 120_000
    assert partition_report(sample(600), trend(5.0), LIMITS).catch_up_ms is None


def report(
    group: str, verdict: Verdict, lag: int | None, catch_up_ms: int | None = None, partition: int = 0
) -> PartitionReport:
    return PartitionReport(sample(lag, group=group, partition=partition, members=0), None, verdict, catch_up_ms)


def test_a_group_is_as_bad_as_its_worst_partition() -> None:
    first, second = group_reports(
        [
            report("good", Verdict.CAUGHT_UP, 0),
            report("bad", Verdict.CATCHING_UP, 5, 1_000, partition=1),
            report("bad", Verdict.STALLED, 7),
            report("bad", Verdict.UNKNOWN, None, partition=2),
        ]
    )
    assert (first.group, first.verdict, first.lag, first.catch_up_ms) == ("bad", Verdict.STALLED, 12, None)
    assert [each.sample.partition for each in first.partitions] == [0, 1, 2]
    assert (second.group, second.is_empty) == ("good", True)


def test_a_group_has_caught_up_when_its_last_partition_has() -> None:
    (found,) = group_reports(
        [report("g", Verdict.CATCHING_UP, 5, 1_000), report("g", Verdict.CATCHING_UP, 5, 9_000, partition=1)]
    )
    assert found.catch_up_ms == 9_000


def test_the_worst_groups_come_first() -> None:
    reports = group_reports(
        [
            report("a", Verdict.CAUGHT_UP, 0),
            report("b", Verdict.FALLING_BEHIND, 5),
            report("c", Verdict.FALLING_BEHIND, 50),
            report("d", Verdict.UNKNOWN, None),
        ]
    )
    assert [each.group for each in reports] == ["c", "b", "a", "d"]
    assert reports[-1].lag is None
