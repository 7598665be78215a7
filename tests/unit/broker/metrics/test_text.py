from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from odradek.broker.metrics.family import Family, counters, gauge, gauges, summaries
from odradek.broker.metrics.text import SAMPLES_A_STEP, Text, content_type
from odradek.broker.metrics.view import View
from odradek.timer.histogram import Histogram
from tests.support.in_process.scraping import OPEN_METRICS, Scraped

VIEW = cast("View", SimpleNamespace())


def text(*families: Family, accept: str = "") -> str:
    parts: list[bytes] = []
    for _ in Text(families).steps(VIEW, accept, parts):
        pass
    return b"".join(parts).decode()


def test_a_pause_makes_no_line_and_ends_a_step() -> None:
    family = gauges("m", (), "Text.", lambda view: [*[None] * SAMPLES_A_STEP, ("", 1)])
    parts: list[bytes] = []
    steps = Text([family]).steps(VIEW, "", parts)
    next(steps)
    assert parts == [b"# HELP m Text.\n# TYPE m gauge\n"]
    next(steps)
    assert parts[1] == b"m 1\n"


def test_a_step_has_a_bounded_number_of_lines() -> None:
    family = gauges("m", ("n",), "Text.", lambda view: ((f'n="{n}"', n) for n in range(1000)))
    parts: list[bytes] = []
    for _ in Text([family]).steps(VIEW, "", parts):
        assert parts[-1].count(b"\n") <= SAMPLES_A_STEP + 2
    assert len(Scraped(b"".join(parts).decode()).labels_of("m")) == 1000


def test_truth_is_a_number() -> None:
    assert "m 1\n" in text(gauge("m", "Text.", lambda view: True))


def test_counters_and_histograms_are_read_in_both_formats() -> None:
    histogram = Histogram()
    for value in range(1, 101):
        histogram.update(value)
    families = (
        counters("c_total", ("a",), "Text.", lambda view: [('a="x"', 2)]),
        summaries("h", ("a",), "Text.", lambda view: [('a="x"', histogram)]),
        summaries("bare", (), "Text.", lambda view: [("", histogram)]),
    )
    for accept in ("", OPEN_METRICS):
        found = Scraped(text(*families, accept=accept), is_open_metrics=bool(accept))
        assert found.value("c_total", a="x") == 2
        assert found.value("h_count", a="x") == found.value("bare_count") == 100
        assert [found.value("h", a="x", quantile=q) for q in ("0.50", "0.99", "0.999")] == [50, 99, 100]
        assert found.value("bare", quantile="0.95") == 95
    assert content_type(OPEN_METRICS).startswith("application/openmetrics-text")
    assert content_type("").startswith("text/plain")
