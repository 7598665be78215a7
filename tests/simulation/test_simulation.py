"""A hundred schedules of faults on three whole brokers in one process; a seed that fails replays with its number."""

from __future__ import annotations

import pytest

from tests.support.simulation.seeds import Seeds, run_seeds

SEEDS = 100
TIMEOUT_S = 900
"""For a machine that has much else to do: alone it is a matter of seconds."""


@pytest.mark.timeout(TIMEOUT_S)
def test_what_must_hold_holds_at_each_step_of_a_hundred_seeds() -> None:
    run_seeds(0, SEEDS)


def test_the_same_seed_does_the_same_to_the_last_frame() -> None:
    first, again = Seeds(1_000_000, 2, "--trace"), Seeds(1_000_000, 2, "--trace")
    trace = first.output()
    assert trace.count("digest") == 2
    assert again.output() == trace
