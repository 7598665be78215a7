from __future__ import annotations

import random

from tests.benchmarks.metrics_cost.loads import LOADS
from tests.benchmarks.metrics_cost.turns import Rhythm, interval


def test_the_interval_has_the_median_and_grows_with_the_differences_of_processes() -> None:
    rng = random.Random(2)
    turns = [rng.gauss(1.02, 0.05) for _ in range(600)]
    alike = [turns[first : first + 100] for first in range(0, 600, 100)]
    found = interval(alike)
    assert found.low < found.median < found.high
    assert 1 < found.low < found.high < 1.04
    apart = [[turn + shift for turn in pair] for pair, shift in zip(alike, (-0.03, 0.03) * 3, strict=True)]
    wider = interval(apart)
    assert wider.high - wider.low > 2 * (found.high - found.low)
    assert interval(alike) == found, "the same in each run"


def test_a_loaded_broker_gets_one_kind_of_request_at_a_time_and_bursts_are_of_all_kinds_in_turn() -> None:
    produce, fetch = LOADS[:2]
    for rhythm in Rhythm:
        numbers = range(-rhythm.warm_up, rhythm.turns)
        expected = {
            Rhythm.LOADED: [(number, load) for load in (produce, fetch) for number in numbers],
            Rhythm.BURSTS: [(number, load) for number in numbers for load in (produce, fetch)],
        }
        assert list(rhythm.kinds((produce, fetch))) == expected[rhythm]
