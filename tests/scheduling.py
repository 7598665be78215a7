"""How `make test` shares the suite among processes.

A module of tests is run by one process. Most modules wait, for sessions that expire and processes that start, so there
are two processes for each processor; the fast tests compute, and get one. The modules that take longest are begun
first: at the end, no process has a long one left while the others have nothing to do.
"""

from __future__ import annotations

from typing import Final

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
)
"""The modules that take longer than half a minute, the longest first."""

FAST: Final = ("tests/unit/", "tests/golden/", "tests/documentation/", "tests/test_")
"""Where the tests of `make test-unit` are."""

MOST_PROCESSES: Final = 8
"""Each process starts brokers and JVMs of its own, which takes memory."""


def processes(processors: int, *, for_fast_tests: bool) -> int:
    """How many processes run tests on that many processors."""
    return processors if for_fast_tests else min(2 * processors, MOST_PROCESSES)


def turn(module: str) -> int:
    """Sorts modules, given as paths: first those of `LONGEST`, the fast ones last."""
    return LONGEST.index(module) if module in LONGEST else len(LONGEST) + module.startswith(FAST)
