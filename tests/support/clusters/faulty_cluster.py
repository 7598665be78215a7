"""A cluster under load whose brokers are killed, paused and cut off, and the checks of what it has acknowledged.

Three partitions on three brokers, each led by another one, `min.insync.replicas` 2; an idempotent producer and a plain
one, both with acks=all. `check` compares every acknowledgement with the records at the end.
"""

from __future__ import annotations

import random
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from tests.support.clusters.cluster import SESSION_TIMEOUT_S, Cluster
from tests.support.disks.replica_files import await_identical
from tests.support.loads.numbered_load import PARTITIONS, Load, check_acknowledged, check_complete, read_all
from tests.support.waiting import eventually

ASSIGNMENT: Final = ((0, 1, 2), (1, 2, 0), (2, 0, 1))
UNAVAILABLE_AT_MOST_S: Final = SESSION_TIMEOUT_S + 5
SILENT_AFTER_A_STOP_S: Final = 2.5
"""A second, and the time that Apache Kafka's brokers and librdkafka need on a busy machine."""
PROGRESS_TIMEOUT_S: Final = 60
LED = re.compile(r"Leader (\S+) with topic id \S+ starts at leader epoch (\d+)")
CONTROLLED = re.compile(r"Epoch incremented to (\d+)")


class FaultyCluster:
    """`cluster` runs brokers 0, 1 and 2."""

    def __init__(self, cluster: Cluster, topic_suffix: str, pause_s: float = 0.02) -> None:
        self.cluster = cluster
        admin = cluster.admin()
        self.loads = {}
        for name in ("idempotent", "plain"):
            topic = admin.create_assigned_topic(f"{name}-{topic_suffix}", ASSIGNMENT, {"min.insync.replicas": "2"})
            cluster.await_complete(topic)
            cluster.await_known(topic)
            self.loads[name] = Load(
                cluster.bootstrap, topic, idempotent=name == "idempotent", pause_s=pause_s, max_in_flight=1
            )

    @property
    def topics(self) -> list[str]:
        return [load.topic for load in self.loads.values()]

    def leader(self, partition: int = 0) -> int:
        return self.cluster.tree.partition(self.topics[0], partition).leader

    def await_progress(self) -> None:
        """Wait until every partition of both topics has acknowledged something more."""

        def counts() -> list[int]:
            return [len(load.acknowledged[p]) for load in self.loads.values() for p in range(PARTITIONS)]

        before = counts()
        eventually(
            counts,
            accept=lambda now: all(n > b for n, b in zip(now, before, strict=True)),
            timeout_s=PROGRESS_TIMEOUT_S,
        )

    @contextmanager
    def disturbed(self, available_after_s: float = UNAVAILABLE_AT_MOST_S) -> Iterator[None]:
        """A fault between two healthy states of the cluster. No partition may be silent for longer than the limit."""
        self.cluster.await_complete(*self.topics)
        self.await_progress()
        for load in self.loads.values():
            load.begin_silence()
        yield
        self.await_progress()
        silence_s = {load.topic: dict(load.silence_s) for load in self.loads.values()}
        print(f"silent for {max(s for by_partition in silence_s.values() for s in by_partition.values()):.1f} s")
        assert all(s <= available_after_s for each in silence_s.values() for s in each.values()), silence_s
        self.cluster.await_complete(*self.topics)

    def kill_once(self, rng: random.Random, victim: int | None = None) -> None:
        """kill -9 of one broker; the others take over; it comes back."""
        with self.disturbed():
            time.sleep(rng.uniform(0, 0.5))
            killed = rng.choice(sorted(self.cluster.brokers)) if victim is None else victim
            print(f"kill {killed}, the controller is {self.cluster.tree.controller()}")
            self.cluster.kill(killed)
            self.await_progress()
            self.cluster.start(killed)

    def stop_once(self, victim: int) -> None:
        """SIGTERM to one broker; it comes back when the others have gone on without it."""
        with self.disturbed(SILENT_AFTER_A_STOP_S):
            print(f"stop {victim}, the controller is {self.cluster.tree.controller()}")
            self.cluster.stop(victim)
            self.await_progress()
            self.cluster.start(victim)

    def kill_all(self, restart_limit_s: float) -> None:
        """Kill all brokers at once; they start again when ZooKeeper has ended their sessions."""
        with self.disturbed(restart_limit_s):
            self.cluster.kill(*self.cluster.brokers)
            self.cluster.start()

    def expire_once(self, rng: random.Random) -> None:
        """The end of a broker's session while the broker lives."""
        with self.disturbed():
            expired = rng.choice(sorted(self.cluster.brokers))
            print(f"expire {expired}, the controller is {self.cluster.tree.controller()}")
            self.cluster.tree.expire(expired)
            eventually(lambda: expired in self.cluster.tree.broker_ids(), timeout_s=SESSION_TIMEOUT_S)
        self.cluster.await_controller()

    def sleep_once(self, broker_id: int, sleep_s: float) -> None:
        """SIGSTOP and SIGCONT: a broker that does not know that its session has ended."""
        self.during(lambda: self.cluster.pause(broker_id), lambda: self.cluster.resume(broker_id), sleep_s)

    def during(
        self,
        begin: Callable[[], object],
        end: Callable[[], object],
        fault_s: float,
        available_after_s: float = UNAVAILABLE_AT_MOST_S,
    ) -> None:
        """Keep a fault up for a while, then end it."""
        with self.disturbed(available_after_s):
            begin()
            try:
                time.sleep(fault_s)
            finally:
                end()
        self.cluster.await_controller()

    def finish(self) -> None:
        for load in self.loads.values():
            load.finish()

    def check(self) -> None:
        """Nothing acknowledged is lost, nothing idempotent repeated, and no epoch had two leaders or controllers."""
        bootstrap = self.cluster.bootstrap
        await_identical(self.cluster, *self.topics)
        check_complete(self.loads["idempotent"], bootstrap)
        load = self.loads["plain"]
        for partition in range(PARTITIONS):
            check_acknowledged(load, partition, read_all(bootstrap, load.topic, partition))
        check_epochs(self.cluster)
        self.cluster.check_logs()


def check_epochs(cluster: Cluster) -> None:
    """The logs of the brokers have one leader for each partition and leader epoch, one controller for each epoch."""
    holders: defaultdict[tuple[str, ...], set[int]] = defaultdict(set)
    for broker_id in cluster.brokers:
        text = cluster.log_text(broker_id)
        for pattern in (LED, CONTROLLED):
            for found in pattern.findall(text):
                holders[found if isinstance(found, tuple) else (found,)].add(broker_id)
    assert any(len(key) == 1 for key in holders), "nobody says that it became the controller"
    assert any(len(key) == 2 for key in holders), "nobody says that it became a leader"
    shared = {key: ids for key, ids in holders.items() if len(ids) > 1}
    assert not shared, shared
