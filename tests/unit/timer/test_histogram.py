from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from odradek.timer.histogram import GENERATIONS, QUANTILES, SIGNIFICANT_BITS, Histogram, sum_of


def test_without_values_every_quantile_is_zero() -> None:
    assert Histogram().quantiles() == [0] * len(QUANTILES)


def test_quantiles_of_small_values_are_exact() -> None:
    histogram = Histogram()
    for value in range(1, 101):
        histogram.update(value)
    assert histogram.quantiles() == [50, 75, 95, 98, 99, 100]
    assert (histogram.count, histogram.maximum) == (100, 100)


def test_a_value_is_forgotten_after_its_generations_and_stays_counted() -> None:
    histogram = Histogram()
    histogram.update(9)
    for _ in range(GENERATIONS - 1):
        histogram.begin_generation()
    assert histogram.quantiles()[0] == 9
    histogram.begin_generation()
    assert histogram.quantiles()[0] == 0
    assert histogram.count == 1


@given(st.lists(st.integers(0, 2**40), min_size=1, max_size=200))
def test_a_quantile_is_a_value_with_seven_bits(values: list[int]) -> None:
    histogram = Histogram()
    for value in values:
        histogram.update(value)
    ordered = sorted(values)
    for quantile, found in zip(QUANTILES, histogram.quantiles(), strict=True):
        exact = min(value for index, value in enumerate(ordered, 1) if index >= quantile * len(ordered))
        assert found <= exact <= found + (exact >> (SIGNIFICANT_BITS - 1))


def test_the_memory_does_not_grow_with_the_number_of_values() -> None:
    histogram = Histogram()
    for value in range(0, 2**20, 97):
        histogram.update(value)
    assert len(histogram.current) < 2**SIGNIFICANT_BITS + 13 * 2 ** (SIGNIFICANT_BITS - 1)


def test_the_sum_of_histograms_has_the_values_of_all_and_forgets_what_they_forgot() -> None:
    one, other = Histogram(), Histogram()
    one.update(5)
    for _ in range(GENERATIONS):
        one.begin_generation()
    one.update(7, 3)
    other.update(200)
    total = sum_of([one, other])
    assert (total.count, total.maximum) == (5, 200)
    assert total.values() == {7: 3, 200: 1}
