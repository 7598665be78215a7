"""The calls, system calls and memory of each request stay at what is recorded (with Python 3.11).

They do not depend on the load of the machine, unlike times. `python -m tests.benchmarks.counts` prints them beside the
recorded ones, `--calls` what is called, and `--record` records them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.counts.counting import Calls
from tests.benchmarks.counts.recorded import recorded
from tests.benchmarks.counts.sequences import SEQUENCES, broker_with_topic, count
from tests.benchmarks.metrics_cost.instructions import Mode, brokers
from tests.benchmarks.metrics_cost.loads import LOADS

SLACK_CALLS = 0.5
"""A callback of a thread pool may run among the requests. One call more in each request is more than this."""

ROUNDS = 3
"""Timers of the broker and callbacks of thread pools run among the requests, more of them the slower a busy machine is.
They only add calls, so a request costs no more than the cheapest round shows.
"""

SLACK_SYSTEM_CALLS = 0.1

SLACK_BYTES = 1_024
"""The interpreter keeps some memory for reuse, more or less of it."""


CALLS_MORE_MAX = {Mode.COUNTED: 8, Mode.TIMED: 45}
"""Of a request with one partition, when metrics are on."""


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_request_costs_no_more_than_recorded(name: str, tmp_path: Path) -> None:
    known = recorded()[name]
    hint = "see `python -m tests.benchmarks.counts --calls`; a cost that pays is recorded with --record"
    for number in range(ROUNDS):
        with broker_with_topic(tmp_path / str(number)) as broker:
            found, _ = count(SEQUENCES[name], broker)
        if max(found.python_calls - known.python_calls, found.native_calls - known.native_calls) <= SLACK_CALLS:
            break
    assert found.python_calls <= known.python_calls + SLACK_CALLS, hint
    assert found.native_calls <= known.native_calls + SLACK_CALLS, hint
    assert found.system_calls <= known.system_calls + SLACK_SYSTEM_CALLS, hint
    assert found.peak_bytes <= known.peak_bytes + SLACK_BYTES, hint


def test_every_sequence_is_recorded_and_no_other() -> None:
    assert list(recorded()) == list(SEQUENCES)


def test_metrics_add_few_calls_to_a_request(tmp_path: Path) -> None:
    """`make bench ARGS=metrics_instructions` has the cost of these calls."""
    with brokers(tmp_path) as modes:
        for load in LOADS[:4]:
            found = {}
            for mode, requests in modes.items():
                frame = requests.prepared(load)
                calls = Calls()
                calls.during(lambda requests=requests, frame=frame: requests.run(frame, 20))  # type: ignore[misc]
                found[mode] = (calls.python.total() + calls.native.total()) / 20
            for mode, more_max in CALLS_MORE_MAX.items():
                assert 0 < found[mode] - found[Mode.OFF] <= more_max, (load.name, mode, found)
