"""The simulation with a topic that is compressed anew, each batch by a worker process.

So between the arrival of a batch and its append there is any time, in which leaders change, brokers die and stop, and
producers send the batch again, to this broker or to another.
"""

from __future__ import annotations

from collections.abc import Mapping

from odradek.storage.validation import validation_cost
from tests.support.simulation.cluster import Simulation
from tests.support.simulation.environment import inline_pools

LONG_SHARE = 0.5
"""Of the jobs that take up to 300 ms."""


class RecompressionSimulation(Simulation):
    """Runs in a process of its own, whose limits it changes."""

    topic_configs: Mapping[str, str] = {"compression.type": "gzip"}

    def run(self) -> None:
        validation_cost.REBUILT_RECORDS_MAX = 0  # type: ignore[misc]
        inline_pools.LONG_SHARE = LONG_SHARE
        super().run()
