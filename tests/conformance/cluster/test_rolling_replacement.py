"""Three Apache Kafka brokers become Odradek brokers one by one and back: same ids, same directories, under load."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.clusters.cluster import Cluster, Kind
from tests.support.clusters.mixed_cluster import (
    BROKERS,
    Group,
    check_loads,
    dump_problems,
    elect_preferred,
    loads,
    transact,
)
from tests.support.disks.replica_files import await_identical
from tests.support.loads.transactional_clients import ConfluentTransactions

pytestmark = pytest.mark.oracle


def test_there_and_back(new_cluster: Callable[..., Cluster], target: Kind) -> None:
    """Clients notice nothing but errors that they retry; groups and transactions go on where they were."""
    cluster = new_cluster(dict.fromkeys(BROKERS, "apache"))
    cluster.start()
    topic = cluster.admin().create_assigned_topic("worked", [BROKERS])
    seen = transact(cluster, topic, ["one", "other"])
    group = Group(cluster, "group", topic)
    assert group.read(len(seen)) == [value.encode() for value in seen]
    started = loads(cluster, "rolled")
    topics = [load.topic for load in started.values()]
    everything = [*topics, topic, "__consumer_offsets", "__transaction_state"]
    try:
        for kind in (target, "apache"):
            for broker_id in BROKERS:
                cluster.replace(broker_id, kind)
                cluster.await_complete(*everything)
                for each in everything:
                    elect_preferred(cluster, each)
                more = transact(cluster, topic, ["one", "other"])
                assert group.read(len(more)) == [value.encode() for value in more]
                seen += more
    finally:
        for load in started.values():
            load.finish()
    group.close()
    assert [v for _, v in ConfluentTransactions().read(cluster.bootstrap, topic, "read_committed")] == seen
    retriable = ("NOT_LEADER", "not leader", "Leader", "timed out", "Timed out", "terminated", "disconnect", "ransport")
    unexpected = [failure for failure in started["plain"].failed if not any(word in failure[2] for word in retriable)]
    assert unexpected == []
    await_identical(cluster, *everything)
    check_loads(cluster, started)
    assert dump_problems(cluster, everything) == []
