"""The names of all benchmarks: groups of workloads, comparisons that print their own tables, and parts."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from tests.benchmarks.comparison.workload import Workload

HERE: Final = Path(__file__).parent

MODULES: Final = (
    "brokers.start_up",
    "brokers.commands",
    "records.produce",
    "records.consume",
    "records.latency",
    "records.pauses",
    "records.transactions",
    "growth.create_topics",
    "growth.long_polling",
    "records.tls",
    "records.many_clients",
    "records.end_to_end",
    "growth.connections",
    "growth.consumer_groups",
    "brokers.memory",
    "records.compression",
    "brokers.cleaning",
    "growth.partitions",
    "growth.log_growth",
    "growth.groups_growth",
    "brokers.replicas",
    "brokers.one_core",
    "brokers.two_brokers",
)
"""Of workloads/, in the order in which they run. The name of a group is the last part."""

GROUPS: Final = {name.rpartition(".")[2]: name for name in MODULES}

BESIDE_APACHE: Final = (
    "test_kit",
    "failover",
    "idle_partitions",
    "compaction",
    "spark",
    "floor",
)
"""Modules of beside_apache/: each prints tables of its own, most of one measurement of each kind of brokers."""

PARTS: Final = tuple(sorted(path.stem.removeprefix("bench_") for path in (HERE / "parts").glob("bench_*.py")))
"""Modules of parts/: each measures one part of Odradek, in a process of its own."""


def workloads(groups: Iterable[str] = GROUPS) -> list[Workload]:
    """All workloads of these groups."""
    modules = [importlib.import_module(f"tests.benchmarks.workloads.{GROUPS[group]}") for group in groups]
    return [workload for module in modules for workload in module.WORKLOADS]


def chosen_workloads(names: Sequence[str], *, full: bool) -> list[Workload]:
    """By the name of a group: its main workloads, with `full` all of them. By their own names or a pattern: those."""
    patterns = [name for name in names if name not in GROUPS]
    found = []
    for workload in workloads():
        by_group = workload.group in names and (workload.main or full)
        if by_group or any(fnmatchcase(workload.name, pattern) for pattern in patterns):
            found.append(workload)
    return found


def is_known(name: str) -> bool:
    return name in (*GROUPS, *BESIDE_APACHE, *PARTS) or bool(chosen_workloads([name], full=True))
