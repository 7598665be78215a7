"""Brokers for tests, `Broker` and `AsyncBroker`, and clusters of them, `Cluster` and `AsyncCluster`.

A broker runs in a thread of the test process or in a process of its own.

The names are loaded when they are used, so that the pytest plugin costs nothing in a run without a broker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from odradek.testing.async_broker import AsyncBroker
    from odradek.testing.broker import Broker
    from odradek.testing.cluster.async_cluster import AsyncCluster
    from odradek.testing.cluster.cluster import Cluster

__all__ = ["AsyncBroker", "AsyncCluster", "Broker", "Cluster"]


def __getattr__(name: str) -> object:
    if name == "Broker":
        from odradek.testing.broker import Broker

        return Broker
    if name == "AsyncBroker":
        from odradek.testing.async_broker import AsyncBroker

        return AsyncBroker
    if name == "AsyncCluster":
        from odradek.testing.cluster.async_cluster import AsyncCluster

        return AsyncCluster
    if name == "Cluster":
        from odradek.testing.cluster.cluster import Cluster

        return Cluster
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
