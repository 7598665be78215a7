"""The page of the lag: one HTML file that needs no other file and no network. All names in it are escaped."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from html import escape

from spark_jobs.lag.lag_table import duration, number, state_text
from spark_jobs.lag.verdicts import GroupReport, PartitionReport, Verdict

# A browser refuses whatever is not in the file itself.
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
STYLE = """
body { font: 14px/1.4 system-ui, sans-serif; margin: 2em auto; max-width: 72em; padding: 0 1em; color: #222; }
table { border-collapse: collapse; width: 100%; margin: .6em 0 1.4em; }
th, td { text-align: left; padding: .25em .6em; border-bottom: 1px solid #ddd; }
td.n, th.n { text-align: right; font-variant-numeric: tabular-nums; }
img { max-width: 100%; border: 1px solid #eee; }
h2 { margin-top: 2em; }
.alarm { color: #b00020; font-weight: 600; }
.good { color: #1b6e3c; }
.note { color: #666; }
"""
GROUP_HEADER = (("group", ""), ("members", "n"), ("lag", "n"), ("state", ""), ("caught up in", "n"), ("at", ""))
PARTITION_HEADER = (
    *(("topic", ""), ("partition", "n"), ("committed", "n"), ("log end", "n"), ("lag", "n")),
    *(("committed/s", "n"), ("written/s", "n"), ("state", ""), ("caught up in", "n"), ("at", "")),
)


def page(
    reports: Sequence[GroupReport],
    *,
    cluster: str,
    now_ms: int,
    window_ms: int,
    overview: bytes | None,
    plots: Mapping[str, bytes],
    refresh_ms: int | None = None,
) -> str:
    """The whole page. `plots`: PNG by group; `refresh_ms`: a browser loads the page again after this time."""
    refresh = "" if refresh_ms is None else f'<meta http-equiv="refresh" content="{max(1, refresh_ms // 1000)}">\n'
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">',
        f"{refresh}<title>Consumer lag</title><style>{STYLE}</style></head><body>",
        "<h1>Consumer lag</h1>",
        f'<p class="note">{escape(cluster)}, {_time(now_ms)}; trends of the last {duration(window_ms)}</p>',
        _groups(reports, now_ms),
    ]
    if overview is not None:
        parts.append(_image(overview, "lag of the groups over time"))
    for report in reports:
        parts.append(f"<h2>{escape(report.group)}</h2>")
        if report.group in plots:
            parts.append(_image(plots[report.group], f"lag of {report.group} over time"))
        parts.append(_partitions(report, now_ms))
    parts.append("</body></html>\n")
    return "\n".join(parts)


def _groups(reports: Sequence[GroupReport], now_ms: int) -> str:
    rows = [
        [
            (escape(report.group), ""),
            (str(report.members), "n"),
            (number(report.lag), "n"),
            _state(report, report.verdict),
            *_catch_up(report.catch_up_ms, now_ms),
        ]
        for report in reports
    ]
    return _table(GROUP_HEADER, rows) if rows else "<p>No group has committed an offset.</p>"


def _partitions(report: GroupReport, now_ms: int) -> str:
    return _table(PARTITION_HEADER, [_partition(report, partition, now_ms) for partition in report.partitions])


def _partition(report: GroupReport, partition: PartitionReport, now_ms: int) -> list[tuple[str, str]]:
    sample, trend = partition.sample, partition.trend
    return [
        (escape(sample.topic), ""),
        (str(sample.partition), "n"),
        (number(sample.committed), "n"),
        (number(sample.log_end), "n"),
        (number(sample.lag), "n"),
        (number(None if trend is None else trend.commit_slope), "n"),
        (number(None if trend is None else trend.end_slope), "n"),
        _state(report, partition.verdict),
        *_catch_up(partition.catch_up_ms, now_ms),
    ]


def _state(report: GroupReport, verdict: Verdict) -> tuple[str, str]:
    kind = "alarm" if verdict.is_alarm else "good" if verdict is Verdict.CAUGHT_UP else ""
    return state_text(report, verdict), kind


def _catch_up(catch_up_ms: int | None, now_ms: int) -> list[tuple[str, str]]:
    at = "-" if catch_up_ms is None else _time(now_ms + catch_up_ms)
    return [(duration(catch_up_ms), "n"), (at, "")]


def _table(header: Sequence[tuple[str, str]], rows: Sequence[Sequence[tuple[str, str]]]) -> str:
    """Cells are HTML already, with their class."""
    lines = ["<table>", _table_row("th", header), *(_table_row("td", row) for row in rows), "</table>"]
    return "\n".join(lines)


def _table_row(tag: str, cells: Sequence[tuple[str, str]]) -> str:
    return "<tr>" + "".join(f'<{tag} class="{kind}">{text}</{tag}>' for text, kind in cells) + "</tr>"


def _image(png: bytes, text: str) -> str:
    return f'<p><img alt="{escape(text)}" src="data:image/png;base64,{base64.b64encode(png).decode()}"></p>'


def _time(time_ms: int) -> str:
    # A slope near zero puts the moment beyond what a date can be.
    try:
        return f"{datetime.fromtimestamp(time_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, ValueError, OSError):
        return "-"
