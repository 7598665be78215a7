"""Three brokers, one of them the controller: one is stopped cleanly, or, with more and more partitions, killed.

Stopped: the longest time that one of twelve partitions acknowledges nothing to an idempotent producer with acks=all.

Killed: from ZooKeeper's end of its session until every broker that is left names a living leader for each partition.
Before, every broker leads a third of them, as preferred leader.
"""

from __future__ import annotations

import time
from typing import Final

from odradek.protocol.api import ApiKey
from odradek.protocol.messages.metadata import MetadataResponseTopic
from tests.benchmarks.contenders import Contenders
from tests.benchmarks.three_brokers import Figures, Topics, await_in_sync, compare, elect_preferred, kill, three_brokers
from tests.support.clusters.clean_stops import ROLES, CleanStops
from tests.support.clusters.cluster import Cluster, Kind
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

PARTITIONS: Final = (500, 1000, 2000, 4000)
PARTITIONS_PER_TOPIC: Final = 100
LOOK_PAUSE_S: Final = 0.02
STOPS: Final = 5


def run(contenders: Contenders) -> None:
    compare(
        "Failover of three brokers, from the end of the session until all leaders are known",
        lambda kind: _failovers(contenders, kind),
    )
    compare(
        f"The longest silence of a partition at {STOPS} stops in order of each role",
        lambda kind: _silence_at_stops(contenders, kind),
    )


def _silence_at_stops(contenders: Contenders, kind: Kind) -> Figures:
    with three_brokers(contenders, "stops", kind) as cluster:
        stops = CleanStops(cluster, "stops")
        silence_s = {(f"the {role} stops", "s"): max(stops.stop_one(role) for _ in range(STOPS)) for role in ROLES}
        stops.finish()
    return silence_s


def _failovers(contenders: Contenders, kind: Kind) -> Figures:
    found: dict[tuple[str, str], float] = {}
    with three_brokers(contenders, "failover", kind) as cluster:
        topics = Topics(cluster, "failover", PARTITIONS_PER_TOPIC)
        for partitions in PARTITIONS:
            topics.grow_to(partitions)
            for name in ("broker", "controller"):
                controller = cluster.await_controller()
                victim = controller if name == "controller" else min(cluster.running - {controller})
                elect_preferred(cluster)
                ended = kill(cluster, victim)
                _await_leaders(cluster, topics)
                found[f"{partitions:,} partitions, a {name} dies", "s"] = time.perf_counter() - ended
                cluster.start(victim)
                await_in_sync(cluster, topics.names)
    return found


def _await_leaders(cluster: Cluster, topics: Topics) -> None:
    """Topic by topic: an answer about all of them costs a broker of either kind more than the failover."""
    for broker_id in cluster.running:
        with RawClient("127.0.0.1", cluster.ports[broker_id]) as client:
            for name in topics.names:
                request = build(ApiKey.METADATA, topics=[{"name": name}])
                while not all(_is_led(cluster, topic) for topic in client.call(request, 9).topics):  # type: ignore[attr-defined]
                    time.sleep(LOOK_PAUSE_S)


def _is_led(cluster: Cluster, topic: MetadataResponseTopic) -> bool:
    leaders = [partition.leader_id for partition in topic.partitions]
    return len(leaders) == PARTITIONS_PER_TOPIC and set(leaders) <= cluster.running
