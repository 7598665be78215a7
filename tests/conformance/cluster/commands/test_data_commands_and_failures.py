"""`odradek produce` and `consume` while the leader of their partition is killed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.clusters.cluster import Cluster, Kind
from tests.support.processes.commands import RunningCommand, run_command

pytestmark = pytest.mark.oracle

LINES = 30_000


@pytest.fixture(scope="module")
def cluster(new_cluster: Callable[..., Cluster], target: Kind) -> Cluster:
    cluster = new_cluster(dict.fromkeys((0, 1, 2), target), {"min.insync.replicas": "2"})
    cluster.start()
    return cluster


def test_the_leader_is_killed(cluster: Cluster) -> None:
    """Each line is written once and in order, and read once and in order, although both lose their leader."""
    cluster.admin().create_assigned_topic("t", [[1, 2, 0]])
    cluster.await_complete("t")
    cluster.await_known("t")
    lines = [b"%d" % number for number in range(LINES)]
    third = LINES // 3
    arguments = ("t", "-o", "beginning", "-c", str(LINES), "-q")
    with (
        RunningCommand(cluster.bootstrap, "consume", *arguments) as consumer,
        RunningCommand(cluster.bootstrap, "produce", "-t", "t", "--linger", "0", "--batch-size", "2000") as producer,
    ):
        producer.write(b"".join(line + b"\n" for line in lines[:third]))
        printed = [consumer.stdout.readline().rstrip() for _ in range(third // 2)]
        cluster.kill(1)
        producer.write(b"".join(line + b"\n" for line in lines[third:]))
        produced = producer.finish()
        assert produced.status == 0, produced
        consumed = consumer.finish()
    assert consumed.status == 0, consumed
    assert printed + consumed.stdout.split() == lines
    everything = run_command(cluster.bootstrap, "consume", "t", "-o", "beginning", "-e", "-q").stdout
    assert everything.split() == lines, "each once"
