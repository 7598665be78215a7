"""Fixtures of the cluster tests: clusters of the chosen target's brokers, one for a module."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.clusters.cluster import Cluster
from tests.support.processes.apache.apache import ZooKeeper

NewCluster = Callable[..., Cluster]


@pytest.fixture(scope="module")
def new_cluster(tmp_path_factory: pytest.TempPathFactory, zookeeper: ZooKeeper) -> Iterator[NewCluster]:
    """Makes clusters that end with the module: `new_cluster({0: "odradek", 1: "apache"}, {"num.partitions": "2"})`.
    Nothing of them runs yet. A traceback in the log of one of them fails the last test.
    """
    clusters: list[Cluster] = []
    with ExitStack() as stack:

        def make(*arguments: object, **keywords: object) -> Cluster:
            directory: Path = tmp_path_factory.mktemp("cluster")
            cluster = Cluster(directory, zookeeper, *arguments, **keywords)  # type: ignore[arg-type]
            stack.callback(cluster.close)
            clusters.append(cluster)
            return cluster

        yield make
        for cluster in clusters:
            cluster.check_logs()
