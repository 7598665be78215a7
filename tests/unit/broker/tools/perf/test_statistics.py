from __future__ import annotations

import re

import pytest

from odradek.broker.tools.perf.statistics import (
    ProduceStatistics,
    consume_figures,
    consume_header,
    date_format,
    percentiles,
)


def test_the_lines_of_a_producer() -> None:
    lines: list[str] = []
    statistics = ProduceStatistics(4, 1_000, lines.append)
    statistics.record(10, 1_048_576, 2_000)
    statistics.record(30, 1_048_576, 6_000)
    assert lines == ["2 records sent, 0.4 records/sec (0.40 MB/sec), 20.0 ms avg latency, 30.0 ms max latency."]
    statistics.record(20, 1_048_576, 7_000)
    statistics.record(40, 1_048_576, 9_000)
    assert statistics.total(9_000).line == (
        "4 records sent, 0.500000 records/sec (0.50 MB/sec), 25.00 ms avg latency, 40.00 ms max latency, "
        "30 ms 50th, 40 ms 95th, 40 ms 99th, 40 ms 99.9th."
    )
    assert len(lines) == 1


def test_without_records() -> None:
    line = ProduceStatistics(0, 5, print).total(5).line
    assert line.startswith("0 records sent, 0.000000 records/sec (0.00 MB/sec), 0.00 ms avg latency")


def test_latencies_are_sampled() -> None:
    statistics = ProduceStatistics(2_000_000, 0, print)
    for number in range(8):
        statistics.record(number, 1, 0)
    assert statistics._latencies == [0, 4]


def test_percentiles() -> None:
    assert percentiles(list(range(100, 0, -1)), 0.5, 0.99, 0.999) == [51, 100, 100]
    assert percentiles([], 0.5) == [0]


def test_the_lines_of_a_consumer() -> None:
    assert consume_header(detailed=False) == (
        "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, "
        "fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
    )
    assert consume_header(detailed=True).startswith("time, threadId, data.consumed.in.MB")
    assert consume_figures(2 * 1_048_576, 10, 1_000, 500) == (2.0, 2.0, 10, 10.0, 500, 500, 4.0, 20.0)
    of_interval = consume_figures(2 * 1_048_576, 10, 1_000, 0, before=(1_048_576, 4))
    assert of_interval.fields == "2.0000, 1.0000, 10, 6.0000, 0, 1000, 1.0000, 6.0000"
    assert consume_figures(0, 0, 0, 0).fields == "0.0000, 0.0000, 0, 0.0000, 0, 0, 0.0000, 0.0000"


def test_dates() -> None:
    text = date_format("yyyy-MM-dd HH:mm:ss:SSS")(1_700_000_000_042)
    assert re.fullmatch(r"2023-11-1[45] \d\d:\d\d:20:042", text)
    assert date_format("SSS")(7) == "007"
    with pytest.raises(ValueError, match="the letter Z is not known"):
        date_format("HH Z")
