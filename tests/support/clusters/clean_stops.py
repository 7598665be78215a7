"""Brokers that stop in order while an idempotent producer with acks=all writes: how long is each partition silent?

Twelve partitions on three brokers, two of which have to be in sync. A broker is stopped in one of three roles, and
started again when every partition has acknowledged something and some time has passed.
"""

from __future__ import annotations

import time
from typing import Final, Literal

from tests.support.clusters.cluster import Cluster
from tests.support.clusters.mixed_cluster import elect_preferred, rotated
from tests.support.loads.numbered_load import Load

Role = Literal["controller", "leader", "follower"]
ROLES: Final[tuple[Role, ...]] = ("controller", "leader", "follower")
"""The controller, which leads a third of the partitions; another one that leads a third; one that leads nothing."""

PARTITIONS: Final = 12
IN_FLIGHT: Final = 5
PAUSE_S: Final = 0.005
SETTLE_S: Final = 0.5
GIVE_UP_S: Final = 8
"""A partition that is silent for so long counts as silent until the broker is back."""
WATCH_S: Final = 2


class CleanStops:
    """Load on brokers 0, 1 and 2 of `cluster`; `finish` ends it."""

    def __init__(self, cluster: Cluster, topic: str) -> None:
        self._cluster = cluster
        assignment = [rotated(partition) for partition in range(PARTITIONS)]
        self._topic = cluster.admin().create_assigned_topic(topic, assignment, {"min.insync.replicas": "2"})
        cluster.await_complete(self._topic)
        cluster.await_known(self._topic)
        self._load = Load(
            cluster.bootstrap,
            self._topic,
            idempotent=True,
            pause_s=PAUSE_S,
            max_in_flight=IN_FLIGHT,
            partitions=PARTITIONS,
        )
        self._load.await_progress()
        self._stops = 0

    def stop_one(self, role: Role) -> float:
        """Stop a broker in that role and start it again; the longest silence of a partition, in seconds."""
        cluster, load = self._cluster, self._load
        victim = self._prepare(role)
        load.begin_silence()
        began = time.monotonic()
        cluster.stop(victim)
        stopped_s = time.monotonic() - began
        while time.monotonic() - began < (GIVE_UP_S if load.is_silent_since(began) else WATCH_S):
            time.sleep(0.02)
        silence_s = max(load.silence_so_far_s().values())
        print(
            f"{role} {victim} ({cluster.brokers[victim].target}) stopped in {stopped_s:.2f} s, "
            f"silent for {silence_s:.2f} s"
        )
        cluster.start(victim)
        self._stops += 1
        return silence_s

    def _prepare(self, role: Role) -> int:
        """The broker to stop, after the leaders have been moved to fit its role."""
        cluster = self._cluster
        controller = cluster.await_controller()
        others = sorted(set(cluster.brokers) - {controller})
        victim = controller if role == "controller" else others[self._stops % len(others)]
        cluster.await_complete(self._topic)
        elect_preferred(cluster, self._topic)
        if role == "follower":
            cluster.stop(victim)
            cluster.start(victim)
            cluster.await_complete(self._topic)
            assert victim not in {state.leader for state in cluster.tree.partitions(self._topic).values()}
        cluster.await_known(self._topic)
        time.sleep(SETTLE_S)
        self._load.await_progress()
        return victim

    def finish(self) -> None:
        self._load.finish()
        assert self._load.failed == []
