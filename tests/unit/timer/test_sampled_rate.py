from __future__ import annotations

import math

import pytest

from odradek.timer.sampled_rate import Average, Rate, SimpleRate, as_int, java_round, throttle_time_ms

LONG_MAX = (1 << 63) - 1


@pytest.mark.parametrize(("window_count", "window_s"), [(1, 1), (1, 11), (11, 1), (11, 11)])
def test_windows_that_have_not_been_count_as_empty_ones(window_count: int, window_s: int) -> None:
    rate = Rate(window_count=window_count, window_ms=window_s * 1_000)
    rate.record(50, 0)
    now_ms = window_s * 1_000 - 1
    assert rate.measure(now_ms) == pytest.approx(50 / (now_ms / 1_000 + (window_count - 1) * window_s))


def test_a_spike_after_ten_windows_below_the_quota() -> None:
    """The numbers of Kafka's ClientQuotaManagerTest.testQuotaViolation."""
    rate = Rate(window_count=11, window_ms=1_000)
    for second in range(10):
        rate.record(400, second * 1_000)
        assert rate.measure(second * 1_000) <= 500
    rate.record(2_300, 10_500)
    assert rate.measure(10_500) == 600
    assert rate.window_size_ms(10_500) == 10_500
    assert throttle_time_ms(600, 500, 10_500) == 2_100


def test_a_measurement_without_records_is_zero_and_divides_by_nothing() -> None:
    rate = Rate(window_count=1, window_ms=1_000)
    assert rate.measure(5) == 0
    assert rate.window_size_ms(5) == 1


def test_what_is_taken_back_counts_no_more() -> None:
    rate = Rate()
    rate.record(1_000, 0)
    rate.record(-1_000, 10)
    assert rate.measure(10) == 0


def test_an_obsolete_window_begins_again_when_it_is_measured() -> None:
    rate = SimpleRate(window_count=2, window_ms=1_000)
    rate.record(100, 0)
    assert rate.measure(1_999) == pytest.approx(100 / 1.999)
    assert rate.measure(2_000) == 0
    rate.record(60, 2_900)
    assert rate.measure(4_000) == pytest.approx(60 / 2.0), "since the measurement at 2,000, not since the record"


def test_a_simple_rate_is_over_one_window_at_least() -> None:
    """The numbers of Kafka's MetricsTest.testSimpleRate."""
    rate = SimpleRate(window_count=10, window_ms=1_000)
    rate.record(1_000, 0)
    assert [rate.measure(now_ms) for now_ms in (0, 400, 1_000)] == [1_000, 1_000, 1_000]
    assert rate.measure(1_400) == pytest.approx(1_000 / 1.4)
    rate.record(1_000, 1_400)
    assert rate.measure(2_500) == pytest.approx(2_000 / 2.5)


def test_memory_is_bounded_by_the_number_of_windows() -> None:
    rate = Rate(window_count=3, window_ms=1_000)
    for second in range(1_000):
        rate.record(1, second * 1_000)
    assert len(rate._samples) == 4


@pytest.mark.parametrize(
    ("value", "bound", "window_ms", "expected"),
    [
        (100.0, 50.0, 2_000, 2_000),
        (55.0, 50.0, 1_000, 100),
        (16.5, 16.5, 9_000, 0),
        (16.5, 20.4, 9_000, -1_721),
        (1.0, 0.0, 1_000, LONG_MAX),
    ],
)
def test_throttle_time(value: float, bound: float, window_ms: int, expected: int) -> None:
    assert throttle_time_ms(value, bound, window_ms) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (2.5, 3),
        (-2.5, -2),
        (2.4, 2),
        (math.nan, 0),
        (math.inf, LONG_MAX),
        (-math.inf, -LONG_MAX - 1),
        (1e300, LONG_MAX),
    ],
)
def test_rounding_is_java_s(value: float, expected: int) -> None:
    assert java_round(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"), [(LONG_MAX, -1), (1 << 31, -(1 << 31)), ((1 << 31) - 1, (1 << 31) - 1), (-1, -1)]
)
def test_a_long_becomes_an_int_as_in_java(value: int, expected: int) -> None:
    assert as_int(value) == expected


def test_an_average_is_of_the_recent_windows() -> None:
    average = Average(window_count=2, window_ms=1_000)
    assert math.isnan(average.measure(0))
    average.record(10, 0)
    average.record(20, 1_000)
    average.record(30, 1_500)
    assert average.measure(1_500) == 20
    assert average.measure(2_000) == 25
