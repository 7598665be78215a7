"""How `make test` shares the suite among processes.

A module of tests is run by one process. Most modules wait, for sessions that expire and processes that start, and leave
half of a processor's time to others; the fast tests compute. So the queue of modules has two ends: most processes take
modules from the front, where those are that take longest, and some take them from the back, where the fast ones are. A
processor then has something to compute while the others wait, and at the end no process has a long module left while
the others have nothing to do.
"""

from __future__ import annotations

from typing import Final

import pytest
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling
from xdist.workermanage import WorkerController

OPTIONS: Final = ("-n", "auto", "--dist", "loadscope", "--no-loadscope-reorder")
"""What `make test` tells pytest."""

LONGEST: Final = (
    "tests/conformance/clients/test_apache_kafka_tests.py",
    "tests/conformance/cluster/test_mixed.py",
    "tests/conformance/spark/jobs/test_spark_archive.py",
    "tests/conformance/spark/jobs/test_spark_restore.py",
    "tests/conformance/spark/test_spark_cluster.py",
    "tests/conformance/spark/test_spark_trouble.py",
    "tests/crash/test_kill9.py",
    "tests/conformance/clients/test_older_releases.py",
    "tests/conformance/files/test_interchange.py",
    "tests/conformance/transactions/test_idempotence.py",
    "tests/simulation/test_simulation.py",
    "tests/conformance/cluster/faults/test_faults.py",
    "tests/conformance/cluster/faults/test_network_partitions.py",
    "tests/conformance/cluster/test_rolling_replacement.py",
    "tests/conformance/transactions/test_transactional_copier.py",
    "tests/conformance/cluster/faults/test_clean_stops.py",
    "tests/simulation/test_clean_stops.py",
    "tests/crash/test_kill9_compaction.py",
    "tests/conformance/clients/test_data_commands.py",
    "tests/conformance/transactions/test_transactions_survive.py",
)
"""The modules that take longer than half a minute, the longest first."""

FAST: Final = ("tests/unit/", "tests/golden/", "tests/documentation/", "tests/test_")
"""Where the tests of `make test-unit` are."""

MOST_PROCESSES: Final = 8
"""That take modules which wait: each starts brokers and JVMs of its own, which takes memory."""


def processes(processors: int, *, for_fast_tests: bool) -> int:
    """How many processes run tests on that many processors."""
    if for_fast_tests:
        return processors
    waiting = min(2 * processors, MOST_PROCESSES)
    return waiting + max(1, waiting // 4)


def from_back(count: int) -> int:
    """How many of so many processes begin at the back."""
    return max(1, count // 5)


def turn(module: str) -> int:
    """Sorts modules, given as paths: first those of `LONGEST`, the fast ones last."""
    return LONGEST.index(module) if module in LONGEST else len(LONGEST) + module.startswith(FAST)


class FromBothEnds(LoadScopeScheduling):
    """Gives the modules to processes; the last of these get them from the back of the queue."""

    def __init__(self, config: pytest.Config, log: Producer | None = None) -> None:
        super().__init__(config, log)
        self._places: dict[str, int] = {}

    def _assign_work_unit(self, node: WorkerController) -> None:
        """Unlike that of the base class, it does not look through all the tests for each of them."""
        if not self._places:
            assert self.collection is not None
            self._places = {test: place for place, test in enumerate(self.collection)}
        module, unit = self.workqueue.popitem(last=self._takes_from_back(node))
        begun = {name: given for name, given in self.assigned_work[node].items() if not all(given.values())}
        self.assigned_work[node] = {**begun, module: unit}
        node.send_runtest_some([self._places[test] for test, is_done in unit.items() if not is_done])

    def _takes_from_back(self, node: WorkerController) -> bool:
        return int(node.gateway.id.removeprefix("gw")) >= self.numnodes - from_back(self.numnodes)
