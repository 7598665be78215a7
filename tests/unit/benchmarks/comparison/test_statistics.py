"""Medians, spread, and the ratios of pairs."""

from __future__ import annotations

import pytest

from tests.benchmarks.comparison.statistics import Comparison, compared, spread


def test_the_spread_of_values() -> None:
    found = spread([5, 1, 4, 2, 3])
    assert found == (3, 1, 2, 4, 5)
    assert found._fields == ("median", "low", "lower_quartile", "upper_quartile", "high")


def test_quartiles_lie_between_the_values() -> None:
    assert spread([1, 2]) == (1.5, 1, 1.25, 1.75, 2)


def test_one_value_is_its_own_spread() -> None:
    assert spread([7.0]) == (7.0,) * 5


def test_ratios_are_of_the_two_turns_of_a_pair() -> None:
    """Not of the medians: those of the pairs would be 3 / 4."""
    comparison = Comparison("processor time", "CPU s/GB", [1, 3, 9], [2, 4, 6])
    assert comparison.ratios == [0.5, 0.75, 1.5]
    assert comparison.behind == 0.75
    assert comparison.pairs_behind == 1


@pytest.mark.parametrize(("unit", "behind"), [("MB/s", 2), ("records/s", 2), ("CPU s/GB", 0.5), ("ms", 0.5)])
def test_more_is_better_for_rates_alone(unit: str, behind: float) -> None:
    assert Comparison("figure", unit, [10], [20]).behind == behind


def test_a_pair_with_a_figure_that_is_too_small_to_see_has_no_ratio() -> None:
    assert Comparison("kernel", "CPU s/GB", [1, 0, 3], [2, 2, 0]).ratios == [0.5]
    assert Comparison("kernel", "CPU s/GB", [0], [0]).behind is None


def test_a_figure_that_explains_others_is_never_behind() -> None:
    assert Comparison("the broker", "% busy", [90], [100]).behind is None
    assert Comparison("the broker", "% of a core", [90], [100]).behind == 0.9


def test_one_side_alone_has_no_ratios() -> None:
    [comparison] = compared([{("figure", "s"): 1}, {("figure", "s"): 2}], [])
    assert comparison.ours == [1, 2]
    assert comparison.theirs == []
    assert comparison.behind is None


def test_figures_are_compared_by_name_and_unit() -> None:
    turn = {("broker", "% of a core"): 1.0, ("broker", "CPU µs/fetch"): 2.0}
    found = compared([turn], [{key: value * 10 for key, value in turn.items()}])
    assert [(each.name, each.unit, each.ours, each.theirs) for each in found] == [
        ("broker", "% of a core", [1.0], [10.0]),
        ("broker", "CPU µs/fetch", [2.0], [20.0]),
    ]
