"""Brokers of a cluster are killed fifty times while Spark streams from it: it reads every record once.

The seed is printed; ODRADEK_SOAK_SEED repeats its choices, ODRADEK_SOAK_KILLS shortens the run.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.clusters.cluster import Cluster, ClusterBroker, running_cluster
from tests.support.clusters.mixed_cluster import move_leaders
from tests.support.loads.streamed_load import StreamedLoad
from tests.support.processes.apache.apache import ZooKeeper

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["tests.support.spark.session"]
pytestmark = [pytest.mark.soak, pytest.mark.filterwarnings(r"ignore:unclosed <socket\.socket:ResourceWarning")]

KILLS = int(os.environ.get("ODRADEK_SOAK_KILLS", "50"))
SEED = int(os.environ.get("ODRADEK_SOAK_SEED", str(random.randrange(2**32))))
SETTINGS = {"zookeeper.session.timeout.ms": "3000"}
MOVES_EVERY = 5


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    zookeeper = ZooKeeper(tmp_path_factory.mktemp("zookeeper"))
    zookeeper.start()
    kinds = dict.fromkeys((0, 1, 2), "odradek")
    directory: Path = tmp_path_factory.mktemp("cluster")
    with running_cluster(Cluster(directory, zookeeper, kinds, SETTINGS)) as cluster:
        yield cluster
        cluster.check_logs()
    zookeeper.stop()


@pytest.fixture(scope="session")
def broker(cluster: Cluster) -> ClusterBroker:
    """The session of Spark ends before it."""
    return cluster.brokers[0]


def test_brokers_are_killed(spark: SparkSession, cluster: Cluster) -> None:
    """Every fifth time the controller, after the leaders have moved."""
    print(f"seed {SEED}, {KILLS} kills")
    rng = random.Random(SEED)
    load = StreamedLoad(spark, cluster, "streamed")
    try:
        load.await_delivered()
        for number in range(KILLS):
            if number % MOVES_EVERY == 0:
                move_leaders(cluster, load.topic, shift=number // MOVES_EVERY + 1)
                load.kill_once(cluster.await_controller())
            else:
                load.kill_once(rng.choice(sorted(cluster.brokers)))
        load.check()
    finally:
        load.close()
