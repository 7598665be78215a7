"""The table, the plots and the page of the lag, from reports."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

import pytest

from spark_jobs.lag.lag_options import parse_options
from spark_jobs.lag.lag_table import duration, summary_line, table_lines
from spark_jobs.lag.outputs import Outputs
from spark_jobs.lag.page import page
from spark_jobs.lag.plots import file_name, group_plot, partition_lines, total_line
from spark_jobs.lag.trends import Sample, Trend
from spark_jobs.lag.verdicts import GroupReport, PartitionReport, Verdict, group_reports

NOW_MS = 1_772_359_200_000
PNG = b"\x89PNG"


def reports(group: str = "billing") -> list[GroupReport]:
    trend = Trend(group, "clicks", 0, 9, 0, -2.0, 5.0, 3.0, 1.0)
    return group_reports(
        [
            PartitionReport(Sample(NOW_MS, group, "clicks", 0, 10, 610, 2), trend, Verdict.CATCHING_UP, 300_000),
            PartitionReport(Sample(NOW_MS, group, "clicks", 1, None, 7, 2), None, Verdict.UNKNOWN, None),
            PartitionReport(Sample(NOW_MS, "idle", "clicks", 0, 4, 9, 0), None, Verdict.STALLED, None),
        ]
    )


def test_the_table_begins_with_the_columns_of_kafka() -> None:
    rows = [line.split() for line in table_lines(reports())]
    assert rows[0][:6] == ["GROUP", "TOPIC", "PARTITION", "CURRENT-OFFSET", "LOG-END-OFFSET", "LAG"]
    assert rows[1] == ["idle", "clicks", "0", "4", "9", "5", "-", "-", "stalled,", "empty", "-"]
    assert rows[2] == ["billing", "clicks", "0", "10", "610", "600", "5.0", "3.0", "catching", "up", "5m"]
    assert rows[3] == ["billing", "clicks", "1", "-", "7", "-", "-", "-", "unknown", "-"]


def test_the_summary_names_groups_in_trouble() -> None:
    assert summary_line(reports()) == "2 groups, 3 partitions, lag 605; stalled: idle; empty: idle"
    assert summary_line([]) == "0 groups, 0 partitions, lag 0"


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (None, "-"),
        (0, "1s"),
        (59_400, "59s"),
        (60_000, "1m"),
        (3_660_000, "1h 1m"),
        (3_600_000, "1h"),
        (90_061_000, "1d 1h"),
    ],
)
def test_durations(milliseconds: int | None, text: str) -> None:
    assert duration(milliseconds) == text


class Tags(HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.sources: list[str] = []
        self.data = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.sources += [value or "" for name, value in attrs if name in ("src", "href")]

    def handle_data(self, data: str) -> None:
        self.data += data


def test_the_page_shows_groups_plots_and_times() -> None:
    text = page(
        reports(),
        cluster="b:9092",
        now_ms=NOW_MS,
        window_ms=60_000,
        overview=PNG,
        plots={"billing": PNG},
        refresh_ms=5_000,
    )
    found = Tags(text)
    assert found.tags.count("img") == 2
    assert all(source.startswith("data:image/png;base64,") for source in found.sources)
    assert '<meta http-equiv="refresh" content="5">' in text
    assert "2026-03-01 10:00:00 UTC" in found.data
    assert "2026-03-01 10:05:00 UTC" in found.data


def test_names_are_no_markup() -> None:
    name = "<script>alert('1')</script>\"><img src=x>"
    text = page(reports(name), cluster="<b>", now_ms=NOW_MS, window_ms=1, overview=None, plots={name: PNG})
    found = Tags(text)
    assert "script" not in found.tags
    assert found.tags.count("img") == 1
    assert name in found.data


def test_a_page_without_groups() -> None:
    text = page([], cluster="b", now_ms=NOW_MS, window_ms=1, overview=None, plots={})
    assert "No group has committed an offset." in text
    assert "refresh" not in text


def test_a_moment_beyond_all_dates_is_not_shown() -> None:
    far = [PartitionReport(Sample(NOW_MS, "g", "t", 0, 0, 9, 1), None, Verdict.CATCHING_UP, 10**18)]
    text = page(group_reports(far), cluster="b", now_ms=NOW_MS, window_ms=1, overview=None, plots={})
    assert "11574074074d" in text


def test_lines_of_the_plot() -> None:
    samples = [
        Sample(time_ms, "g", "t", p, 0, lag, 1) for time_ms, p, lag in ((2, 0, 5), (1, 0, 3), (1, 1, 9), (2, 1, 9))
    ]
    samples.append(Sample(1, "g", "t", 2, None, 4, 1))
    assert partition_lines(samples) == {("t", 1): [(1, 9), (2, 9)], ("t", 0): [(1, 3), (2, 5)]}
    assert total_line(samples) == [(1, 12), (2, 14)]
    many = [Sample(1, "g", "t", p, 0, p, 1) for p in range(50)]
    assert [partition for _, partition in partition_lines(many)] == [49, 48, 47, 46, 45, 44, 43, 42]


def test_plots_are_png_whatever_the_names() -> None:
    samples = [Sample(NOW_MS + n, "_$x$ 中", "t", p, 0, n, 1) for n in range(3) for p in (0, 1)]
    assert group_plot("_$x$ 中", samples).startswith(PNG)
    assert group_plot("none", []).startswith(PNG)


def test_file_names_are_safe_and_distinct() -> None:
    hostile = ["a/b", "../x", "..", "a%2Fb", "A" * 300, "A" * 301, "중" * 100, "a\0b"]
    names = [file_name(group) for group in hostile]
    assert len(set(names)) == len(names)
    assert all(len(name) < 200 and not name.startswith(".") and "/" not in name and "\0" not in name for name in names)
    assert file_name("billing") == "billing.png"


def test_outputs_are_replaced_and_old_plots_removed(tmp_path: Path) -> None:
    outputs = Outputs(parse_options(["--output", str(tmp_path / "lag"), "--once"]))
    outputs.write(reports(), {"billing": [], "idle": []}, NOW_MS)
    outputs.write(reports(), {"idle": []}, NOW_MS)
    assert [path.name for path in (tmp_path / "lag" / "plots").iterdir()] == ["idle.png"]
    assert sorted(path.name for path in (tmp_path / "lag").iterdir()) == ["index.html", "overview.png", "plots"]
    assert outputs.history == (tmp_path / "lag" / "history").as_uri()
