"""Three brokers with more and more idle partitions of three replicas: how they slow down the use of other partitions.

Beside none, and beside the idle ones: the latency of one record at a time with acks=all to a topic of one partition;
how long a transaction of one record takes to commit; the share of a core that the busiest broker uses without requests.

Then what happens to brokers. One is stopped and started again: how long until it is in sync with all partitions. One
that is not the controller, leads a third of all and coordinates a thousand groups is killed: how long from ZooKeeper's
end of its session until another one acknowledges a record with acks=all, and until the offsets of all those groups are
answered. The controller, leader of a third as well, is stopped in order: the longest silence of a partition.

`ODRADEK_BENCH_PARTITIONS=1000,10000` says how many there are, `ODRADEK_BENCH_KINDS=odradek` runs one kind alone.

The client is a plain socket with one prepared frame. It pauses between two records, like a client that waits for each.
"""

from __future__ import annotations

import itertools
import os
import socket
import time
from collections import defaultdict
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, Final

from odradek.coordinator.partitioning import partition_for
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.benchmarks.clients.transactions import commit_many
from tests.benchmarks.contenders import Contenders, frame_of
from tests.benchmarks.group_offsets import GROUP, TRANSACTION, commit, find_coordinator, offsets_of, served
from tests.benchmarks.measure import Table, percentile, usage_of
from tests.benchmarks.three_brokers import (
    LOOK_PAUSE_S,
    Figures,
    Topics,
    await_in_sync,
    compare,
    elect_preferred,
    kill,
    names_led_by,
    three_brokers,
)
from tests.support.clusters.clean_stops import CleanStops
from tests.support.clusters.cluster import Cluster, Kind
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import batch, build

PARTITIONS: Final = tuple(map(int, os.environ.get("ODRADEK_BENCH_PARTITIONS", "1000,2000").split(",")))
PARTITIONS_PER_TOPIC: Final = 500
CONTROLLER, FOLLOWER, LEADER = 0, 1, 2
USED: Final = "used"
COMMITTED: Final = "committed"
COMMITTED_PARTITIONS: Final = 10
GROUPS: Final = 1_000
OFFSETS_TOPIC, OFFSETS_PARTITIONS = "__consumer_offsets", 50
TRANSACTIONS_TOPIC, TRANSACTIONS_PARTITIONS = "__transaction_state", 4
PRODUCE_VERSION: Final = 9
PRODUCE: Final = build(
    ApiKey.PRODUCE,
    acks=-1,
    timeout_ms=30_000,
    topic_data=[{"name": USED, "partition_data": [{"index": 0, "records": batch(bytes(100))}]}],
)
WARM_UP: Final = 1_000
MEASURED: Final = 500
TRANSACTIONS: Final = 100
PAUSE_S: Final = 0.003
IDLE_S: Final = 15
SETTLE_S: Final = 10
"""Followers have the new partitions by then, and high watermarks are on the disk."""
GIVE_UP_S: Final = 60

SETTINGS: Final = {"replica.lag.time.max.ms": "30000", "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS)}


def run(contenders: Contenders) -> None:
    figures = compare(
        "Three brokers with idle partitions, used by others",
        lambda kind: IdlePartitions(contenders, kind).figures,
    )
    table = Table("How many times what it is beside none")
    for beside_none, unit in figures["odradek"] or figures["apache"]:
        if not beside_none.startswith("0 idle, "):
            continue
        what = beside_none.removeprefix("0 idle, ")
        for partitions in PARTITIONS:
            name = f"{partitions:,} idle, {what}"
            growth = {kind: of[name, unit] / of[beside_none, unit] for kind, of in figures.items() if of}
            table.row(name, "times", growth.get("odradek", 0.0), growth.get("apache", 0.0))


class IdlePartitions:
    """The figures of one kind of brokers."""

    def __init__(self, contenders: Contenders, kind: Kind) -> None:
        self.figures: dict[tuple[str, str], float] = {}
        with three_brokers(contenders, "idle", kind, SETTINGS) as cluster:
            self._cluster = cluster
            self._idle = Topics(cluster, "idle", PARTITIONS_PER_TOPIC)
            self._prepare()
            for partitions in (0, *PARTITIONS):
                self._idle.grow_to(partitions)
                for (what, unit), figure in self._measure(partitions).items():
                    self.figures[name := f"{partitions:,} idle, {what}", unit] = figure
                    print(f"{kind}: {name} {figure:.2f} {unit}", flush=True)  # the table comes minutes later

    def _prepare(self) -> None:
        """Set up what is used beside the idle partitions, all on `LEADER`: a partition, a transactional id, groups."""
        cluster = self._cluster
        assigned = [[LEADER, CONTROLLER, FOLLOWER]]
        cluster.admin().create_assigned_topic(USED, assigned)
        cluster.admin().create_assigned_topic(COMMITTED, assigned * COMMITTED_PARTITIONS)
        with RawClient("127.0.0.1", cluster.ports[LEADER]) as client:
            find_coordinator(client, GROUP)
            find_coordinator(client, TRANSACTION)
        self._used = [USED, COMMITTED, OFFSETS_TOPIC, TRANSACTIONS_TOPIC]
        await_in_sync(cluster, self._used)
        self._bring_order()
        transactions = self._names(TRANSACTIONS_TOPIC, TRANSACTIONS_PARTITIONS, 1)
        self._transactional_id = transactions[0][0]
        self._groups = self._names(OFFSETS_TOPIC, OFFSETS_PARTITIONS, GROUPS)
        with RawClient("127.0.0.1", cluster.ports[LEADER]) as client:
            for group in itertools.chain(*self._groups):
                commit(client, group, COMMITTED, COMMITTED_PARTITIONS)

    def _names(self, topic: str, partitions: int, count: int) -> list[list[str]]:
        """Names that `LEADER` coordinates, by partition of that topic."""
        partition_of = partial(partition_for, partition_count=partitions)
        leaders = {index: state.replicas[0] for index, state in self._cluster.tree.partitions(topic).items()}
        by_partition: dict[int, list[str]] = defaultdict(list)
        for name in itertools.islice(names_led_by(LEADER, leaders, partition_of), count):
            by_partition[partition_of(name)].append(name)
        return list(by_partition.values())

    def _bring_order(self) -> None:
        """Every replica in sync, `CONTROLLER` the controller, every leader the preferred one."""
        await_in_sync(self._cluster, [*self._used, *self._idle.names])
        self._cluster.make_controller(CONTROLLER)
        elect_preferred(self._cluster)
        _await_acknowledgement(self._cluster, {LEADER})

    def _measure(self, partitions: int) -> Figures:
        cluster = self._cluster
        found: dict[tuple[str, str], float] = {}
        self._bring_order()
        time.sleep(SETTLE_S)
        self._latencies(WARM_UP, pause_s=0)  # brokers that were just started have cold compilers
        latencies = self._latencies(MEASURED, pause_s=PAUSE_S)
        found["latency p50", "ms"] = percentile(latencies, 0.5) * 1000
        found["latency p99", "ms"] = percentile(latencies, 0.99) * 1000
        for step, p50_ms in self._commits().items():
            found[f"a transaction is {step}, p50", "ms"] = p50_ms
        found["the busiest broker", "% of a core"] = self._idle_share() * 100
        found["restart until in sync", "s"] = self._restart()
        self._bring_order()
        found["a leader dies, acknowledged again", "s"], found[f"{GROUPS:,} groups loaded", "s"] = self._fail_over()
        cluster.start(LEADER)
        self._bring_order()
        stops = CleanStops(cluster, f"stops-{partitions}")
        found["the controller stops, silence", "s"] = stops.stop_one("controller")
        stops.finish()
        return found

    def _latencies(self, count: int, *, pause_s: float) -> list[float]:
        """Seconds, sorted."""
        frame = frame_of(PRODUCE, PRODUCE_VERSION)
        latencies = []
        with socket.create_connection(("127.0.0.1", self._cluster.ports[LEADER])) as client:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for _ in range(count):
                started = time.perf_counter()
                client.sendall(frame)
                client.recv(65_536)
                latencies.append(time.perf_counter() - started)
                time.sleep(pause_s)
        return sorted(latencies)

    def _commits(self) -> dict[str, float]:
        """Milliseconds until it is decided, and until its markers are written."""
        broker = self._cluster.brokers[LEADER]
        commits = commit_many(broker, self._transactional_id, USED, 1, TRANSACTIONS)
        steps = {step: sorted(getattr(each, step) for each in commits) for step in ("decided", "complete")}
        return {step: percentile(values, 0.5) for step, values in steps.items()}

    def _idle_share(self) -> float:
        """The share of a core that the busiest broker uses without requests."""
        brokers = self._cluster.brokers
        before = {broker_id: usage_of(broker.pid) for broker_id, broker in brokers.items()}
        time.sleep(IDLE_S)
        return max((usage_of(brokers[each].pid) - before[each]).total_s for each in before) / IDLE_S

    def _restart(self) -> float:
        """Seconds from the start of a broker until it is in the ISR of every partition."""
        self._cluster.stop(FOLLOWER)
        started = time.perf_counter()
        self._cluster.start(FOLLOWER)
        return await_in_sync(self._cluster, [*self._used, *self._idle.names]) - started

    def _fail_over(self) -> tuple[float, float]:
        """Seconds until a record is acknowledged again, and until the offsets of all groups are answered."""
        ended = kill(self._cluster, LEADER)
        others = self._cluster.running
        with ThreadPoolExecutor() as pool:
            acknowledged = pool.submit(_await_acknowledgement, self._cluster, others)
            answered = pool.submit(self._await_groups, others)
            return acknowledged.result() - ended, answered.result() - ended

    def _await_groups(self, brokers: Collection[int]) -> float:
        """The time at which all offsets of all groups have been answered by these brokers.

        Until a partition is loaded, only one of its groups is asked: more requests would slow down the loading.
        """
        waiting = {groups[0]: groups for groups in self._groups}
        offsets: dict[str, int] = {}
        clients = [RawClient("127.0.0.1", self._cluster.ports[each], timeout_s=GIVE_UP_S) for each in brokers]
        while waiting:
            for client in clients:
                loaded = [group for first in served(client, waiting) for group in waiting.pop(first)]
                offsets.update(offsets_of(client, loaded) if loaded else {})
            time.sleep(LOOK_PAUSE_S)
        answered = time.perf_counter()
        for client in clients:
            client.close()
        assert len(offsets) == GROUPS, len(offsets)
        assert set(offsets.values()) == {COMMITTED_PARTITIONS}, set(offsets.values())
        return answered


def _await_acknowledgement(cluster: Cluster, brokers: Collection[int]) -> float:
    """The time at which one of these brokers has acknowledged a record."""
    clients = [RawClient("127.0.0.1", cluster.ports[each]) for each in brokers]
    give_up_at = time.monotonic() + GIVE_UP_S
    for client in itertools.cycle(clients):
        answer: Any = client.call(PRODUCE, PRODUCE_VERSION)
        if answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE:
            break
        assert time.monotonic() < give_up_at, answer
        time.sleep(LOOK_PAUSE_S)
    for client in clients:
        client.close()
    return time.perf_counter()
