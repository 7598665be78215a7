"""The calls, system calls and memory of each request stay at what is recorded (with Python 3.11).

They do not depend on the load of the machine, unlike times. `python -m tests.benchmarks.counts` prints them beside the
recorded ones, `--calls` what is called, and `--record` records them.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.benchmarks.counts.recorded import recorded
from tests.benchmarks.counts.sequences import SEQUENCES, broker_with_topic, count

SLACK_CALLS = 0.5
"""A callback of a thread pool may run among the requests. One call more in each request is more than this."""

SLACK_SYSTEM_CALLS = 0.1

SLACK_BYTES = 1_024
"""The interpreter keeps some memory for reuse, more or less of it."""


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_request_costs_no_more_than_recorded(name: str, tmp_path: Path) -> None:
    with broker_with_topic(tmp_path) as broker:
        found, _ = count(SEQUENCES[name], broker)
    known = recorded()[name]
    hint = "see `python -m tests.benchmarks.counts --calls`; a cost that pays is recorded with --record"
    assert found.python_calls <= known.python_calls + SLACK_CALLS, hint
    assert found.native_calls <= known.native_calls + SLACK_CALLS, hint
    assert found.system_calls <= known.system_calls + SLACK_SYSTEM_CALLS, hint
    assert found.peak_bytes <= known.peak_bytes + SLACK_BYTES, hint


def test_every_sequence_is_recorded_and_no_other() -> None:
    assert list(recorded()) == list(SEQUENCES)
