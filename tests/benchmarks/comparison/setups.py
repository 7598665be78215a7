"""The brokers of workloads: one node of each kind, none, and more."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tests.benchmarks.comparison.workload import Setup, Side
from tests.benchmarks.contenders import Contenders


@contextmanager
def _one_node(contenders: Contenders, label: str) -> Iterator[Side]:
    broker = contenders.new(label, "node")
    try:
        broker.start()
        yield Side(label, contenders, [broker])
    finally:
        broker.close()


@contextmanager
def _nothing(contenders: Contenders, label: str) -> Iterator[Side]:
    yield Side(label, contenders)


ONE_NODE = Setup("one node", _one_node)
JUST_STARTED = Setup("one node, just started", _one_node)
"""For workloads that say themselves how long the brokers have worked before."""
NOTHING = Setup("nothing that runs", _nothing)
