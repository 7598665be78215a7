"""Which plots a report has, and that each is a PNG."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tests.benchmarks.comparison.plots import by_group, by_series, draw
from tests.benchmarks.comparison.runner import Result
from tests.benchmarks.comparison.statistics import Comparison

COMPARISON = Comparison("throughput", "MB/s", [50, 60], [100, 200])
ALONE = Result("produce/one", "one", "one node", ("Odradek", "Apache"), [COMPARISON])
GROWTH = [replace(ALONE, name=f"growth/{count}", series=("partitions", float(count))) for count in (1000, 10)]


def test_a_series_is_in_the_order_of_what_grows() -> None:
    assert by_series([ALONE, *GROWTH]) == {("growth", "partitions"): [(10.0, GROWTH[1]), (1000.0, GROWTH[0])]}


def test_ratios_are_drawn_by_group_where_there_are_some() -> None:
    without = replace(ALONE, name="other", comparisons=[Comparison("memory", "MB", [1], [])])
    assert by_group([ALONE, without, *GROWTH]) == {"produce": [ALONE]}


def test_every_plot_is_a_png(tmp_path: Path) -> None:
    names = draw([ALONE, *GROWTH], tmp_path)
    assert names == ["ratios-produce.png", "growth-growth-partitions.png"]
    assert all((tmp_path / name).read_bytes().startswith(b"\x89PNG") for name in names)
