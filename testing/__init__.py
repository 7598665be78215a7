"""Brokers for tests, `Broker` and `AsyncBroker`, and clusters of them, `Cluster` and `AsyncCluster`.

A broker runs in a thread of the test process or in a process of its own.

The names are loaded when they are used, so that the pytest plugin costs nothing in a run without a broker.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.testing.async_broker import AsyncBroker
    from odradek.testing.broker import Broker
    from odradek.testing.cluster.async_cluster import AsyncCluster
    from odradek.testing.cluster.cluster import Cluster

__all__ = ["AsyncBroker", "AsyncCluster", "Broker", "Cluster"]

_MODULES = {
    "AsyncBroker": "odradek.testing.async_broker",
    "AsyncCluster": "odradek.testing.cluster.async_cluster",
    "Broker": "odradek.testing.broker",
    "Cluster": "odradek.testing.cluster.cluster",
}


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from odradek.testing.first_imports import without_collections

    with without_collections(module):
        return getattr(import_module(module), name)
