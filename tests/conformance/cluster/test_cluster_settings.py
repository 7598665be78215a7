"""Settings of a cluster: leaders that come back by themselves, racks that only some brokers have."""

from __future__ import annotations

from collections.abc import Callable

import confluent_kafka
import pytest

from tests.support.clusters.cluster import SETTLE_TIMEOUT_S, Cluster, Kind
from tests.support.waiting import eventually

pytestmark = pytest.mark.oracle

BROKERS = (0, 1, 2)
SETTINGS = {"auto.leader.rebalance.enable": "true", "leader.imbalance.check.interval.seconds": "1"}


@pytest.fixture(scope="module")
def cluster(new_cluster: Callable[..., Cluster], target: Kind) -> Cluster:
    def own_settings(broker_id: int) -> dict[str, str]:
        return {"broker.rack": "north"} if broker_id == 0 else {}

    cluster = new_cluster(dict.fromkeys(BROKERS, target), SETTINGS, own_settings=own_settings)
    cluster.start()
    return cluster


def test_replicas_cannot_be_placed_by_racks_that_only_some_brokers_have(cluster: Cluster) -> None:
    with pytest.raises(confluent_kafka.KafkaException) as failure:
        cluster.admin().create_topic("unplaced", 3, replicas=2)
    error = failure.value.args[0]
    assert (error.code(), error.str()) == (confluent_kafka.KafkaError.UNKNOWN, "Unknown broker error")
    assert "unplaced" not in cluster.tree.topics()


def test_a_broker_that_is_back_leads_again(cluster: Cluster) -> None:
    """Nobody asks for it: the controller looks for imbalance from time to time."""
    cluster.admin().create_assigned_topic("balanced", [[0, 1, 2], [1, 2, 0], [2, 0, 1], [0, 2, 1]])
    cluster.await_complete("balanced")
    cluster.stop(0)
    assert all(state.leader != 0 for state in cluster.tree.partitions("balanced").values())
    cluster.start(0)
    eventually(
        lambda: [state.leader for _, state in sorted(cluster.tree.partitions("balanced").items())],
        accept=lambda leaders: leaders == [0, 1, 2, 0],
        timeout_s=SETTLE_TIMEOUT_S,
    )
    cluster.await_known("balanced")
