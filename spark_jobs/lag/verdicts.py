"""What a lag and its trend mean: stalled, falling behind, catching up and when, caught up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from spark_jobs.lag.trends import Sample, Trend

LEAST_SAMPLES = 3
LEAST_EXPLAINED = 0.5
"""A slope counts when its line explains half of the variance: between two commits any lag goes up and down."""


LEAST_SLOPE = 1 / 3600
"""Records a second: less than one in an hour is no change."""


class Verdict(Enum):
    """The state of a partition or a group, the worst first."""

    STALLED = "stalled"
    FALLING_BEHIND = "falling behind"
    BEYOND_END = "beyond the end"
    CATCHING_UP = "catching up"
    STEADY = "steady"
    CAUGHT_UP = "caught up"
    UNKNOWN = "unknown"

    @property
    def is_alarm(self) -> bool:
        return self in (Verdict.STALLED, Verdict.FALLING_BEHIND, Verdict.BEYOND_END)


SEVERITY = {verdict: number for number, verdict in enumerate(Verdict)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What is too much."""

    stalled_after_ms: int = 300_000
    tolerance: int = 0  # a lag of so many records is caught up


class PartitionReport(NamedTuple):
    """A partition that a group reads: its last sample, its trend and what they mean."""

    sample: Sample
    trend: Trend | None
    verdict: Verdict
    catch_up_ms: int | None  # from the time of the sample on; None: not in sight


class GroupReport(NamedTuple):
    """A group: the worst of its partitions."""

    group: str
    members: int
    lag: int | None  # None: of no partition known
    verdict: Verdict
    catch_up_ms: int | None  # when the last of its partitions has caught up
    partitions: tuple[PartitionReport, ...]

    @property
    def is_empty(self) -> bool:
        """No members: nothing reads for the group, or a client that commits without being a member."""
        return self.members == 0


def partition_report(sample: Sample, trend: Trend | None, limits: Limits) -> PartitionReport:
    verdict = _verdict(sample, trend, limits)
    catch_up_ms = None
    if verdict is Verdict.CATCHING_UP:
        assert trend is not None
        assert trend.lag_slope is not None
        catch_up_ms = round((sample.lag or 0) / -trend.lag_slope * 1000)
    return PartitionReport(sample, trend, verdict, catch_up_ms)


def group_reports(reports: Iterable[PartitionReport]) -> list[GroupReport]:
    """One report for each group, the worst first."""
    by_group: dict[str, list[PartitionReport]] = {}
    for report in reports:
        by_group.setdefault(report.sample.group, []).append(report)
    found = [_group_report(group, partitions) for group, partitions in by_group.items()]
    return sorted(found, key=lambda report: (SEVERITY[report.verdict], -(report.lag or 0), report.group))


def _verdict(sample: Sample, trend: Trend | None, limits: Limits) -> Verdict:
    lag = sample.lag
    if lag is None:
        return Verdict.UNKNOWN
    if lag < 0:
        return Verdict.BEYOND_END
    if lag <= limits.tolerance:
        return Verdict.CAUGHT_UP
    if trend is None:
        return Verdict.STEADY
    slope = _certain_slope(trend)
    if trend.idle_ms is not None and trend.idle_ms >= limits.stalled_after_ms and slope >= 0:
        return Verdict.STALLED
    if slope > 0:
        return Verdict.FALLING_BEHIND
    return Verdict.CATCHING_UP if slope < 0 else Verdict.STEADY


def _certain_slope(trend: Trend) -> float:
    """The slope of the lag, 0 if the samples do not lie along it."""
    if trend.lag_slope is None or trend.explained is None or trend.samples < LEAST_SAMPLES:
        return 0.0
    is_certain = trend.explained >= LEAST_EXPLAINED and abs(trend.lag_slope) >= LEAST_SLOPE
    return trend.lag_slope if is_certain else 0.0


def _group_report(group: str, partitions: list[PartitionReport]) -> GroupReport:
    lags = [report.sample.lag for report in partitions if report.sample.lag is not None]
    verdict = min((report.verdict for report in partitions), key=SEVERITY.__getitem__)
    times = [report.catch_up_ms for report in partitions if report.catch_up_ms is not None]
    return GroupReport(
        group=group,
        members=max(report.sample.members for report in partitions),
        lag=sum(lags) if lags else None,
        verdict=verdict,
        catch_up_ms=max(times) if verdict is Verdict.CATCHING_UP else None,
        partitions=tuple(sorted(partitions, key=lambda report: (report.sample.topic, report.sample.partition))),
    )
