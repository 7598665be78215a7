"""The lag of groups as lines for a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from spark_jobs.lag.verdicts import GroupReport, PartitionReport, Verdict

HEADER = (
    *("GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"),
    *("COMMITTED/S", "WRITTEN/S", "STATE", "CAUGHT-UP-IN"),
)
UNITS_S = (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


def table_lines(reports: Sequence[GroupReport]) -> Iterator[str]:
    """A line for each partition, with the columns of kafka-consumer-groups first."""
    rows = [HEADER, *(_row(report, partition) for report in reports for partition in report.partitions)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADER))]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def summary_line(reports: Sequence[GroupReport]) -> str:
    """Such as `3 groups, 12 partitions, lag 40; stalled: a; falling behind: b, c; empty: a`."""
    partitions = sum(len(report.partitions) for report in reports)
    lag = sum(report.lag or 0 for report in reports)
    groups = f"{len(reports)} {'group' if len(reports) == 1 else 'groups'}"
    parts = [f"{groups}, {partitions} {'partition' if partitions == 1 else 'partitions'}, lag {lag}"]
    for verdict in Verdict:
        named = [report.group for report in reports if report.verdict is verdict]
        if verdict.is_alarm and named:
            parts.append(f"{verdict.value}: {', '.join(named)}")
    empty = [report.group for report in reports if report.is_empty]
    return "; ".join([*parts, *([f"empty: {', '.join(empty)}"] if empty else [])])


def state_text(report: GroupReport, verdict: Verdict) -> str:
    return f"{verdict.value}, empty" if report.is_empty else verdict.value


def number(value: int | float | None) -> str:
    """A count or a rate; `-` for None."""
    if value is None:
        return "-"
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def duration(milliseconds: int | None) -> str:
    """The two largest units, such as `1h 5m`; `-` for None."""
    if milliseconds is None:
        return "-"
    seconds = max(1, round(milliseconds / 1000))
    parts: list[str] = []
    for unit, unit_s in UNITS_S:
        if seconds >= unit_s or parts:
            parts.append(f"{seconds // unit_s}{unit}")
            seconds %= unit_s
        if len(parts) == 2:
            break
    return " ".join(part for part in parts if not part.startswith("0"))


def _row(report: GroupReport, partition: PartitionReport) -> tuple[str, ...]:
    sample, trend = partition.sample, partition.trend
    return (
        sample.group,
        sample.topic,
        str(sample.partition),
        number(sample.committed),
        number(sample.log_end),
        number(sample.lag),
        number(None if trend is None else trend.commit_slope),
        number(None if trend is None else trend.end_slope),
        state_text(report, partition.verdict),
        duration(partition.catch_up_ms),
    )
