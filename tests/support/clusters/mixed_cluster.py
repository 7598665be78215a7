"""Loads on a cluster of Odradek and Apache Kafka brokers, changes of its brokers, and checks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from odradek.broker.inter_broker.response_errors import error_codes
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from odradek.protocol.messages.elect_leaders import ElectLeadersRequest
from odradek.protocol.messages.elect_leaders import TopicPartitions as ElectedPartitions
from tests.support.clusters.cluster import SETTLE_TIMEOUT_S, Cluster
from tests.support.disks.replica_files import log_files, partition_dirs
from tests.support.loads.group_reader import GroupReader, HangsError, ReaderProcess
from tests.support.loads.numbered_load import PARTITIONS, Load, check_acknowledged, check_complete, read_all
from tests.support.loads.transactional_clients import ConfluentTransactions
from tests.support.processes.apache.dump_logs import files_argument, kafka_prints
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient

BROKERS: Final = (0, 1, 2)
COMMITS_WHILE_COORDINATORS_MOVE: Final = {
    "heartbeat.interval.ms": 100,
    "socket.timeout.ms": 10_000,
}
"""librdkafka can fail to commit, and to send heartbeats, for as long as `socket.timeout.ms` after a commit was answered
NOT_COORDINATOR: each time it learns the address of the coordinator it closes the connection to the old one, which ends
the repeated commit with an error, for which it forgets the coordinator again. A member that has learnt of the new
coordinator from a heartbeat does not come to this; the session (SESSION_TIMEOUT_S) lasts longer than some such
commits."""
SESSION_TIMEOUT_S: Final = 120
HANGS_AFTER_S: Final = 30
"""A call that was to return after one second and has not is a deadlock in the client; a busy machine takes seconds."""
CALL_TIMEOUT_S: Final = 120
"""For the other calls. The one that asks for a committed offset was to return after a quarter of this."""
ELECTION_TIMEOUT_MS: Final = 5000
Plan = Mapping[tuple[str, int], Sequence[int]]


def rotated(shift: int) -> tuple[int, ...]:
    """The three brokers, beginning with another one."""
    return tuple(BROKERS[(i + shift) % 3] for i in range(3))


def reassign(cluster: Cluster, plan: Plan) -> None:
    """AlterPartitionReassignments, and wait until it is done."""
    begin_reassignment(cluster, plan)
    cluster.await_complete(*{topic for topic, _ in plan})


def begin_reassignment(cluster: Cluster, plan: Plan) -> None:
    """Sends the request to the controller only."""
    partitions = defaultdict(list)
    for (topic, partition), replicas in plan.items():
        partitions[topic].append(ReassignablePartition(partition_index=partition, replicas=[*replicas]))
    topics = [ReassignableTopic(name=topic, partitions=found) for topic, found in partitions.items()]
    controller = cluster.tree.controller()
    assert controller is not None
    with RawClient(cluster.host(controller), cluster.ports[controller]) as client:
        answer = client.call(AlterPartitionReassignmentsRequest(topics=topics), 0)
    assert set(error_codes(answer)) == {ErrorCode.NONE}, answer


def elect_preferred(cluster: Cluster, topic: str) -> None:
    """Has the controller elect, as often as it takes: Apache Kafka's answer waits for leaders that its cache may never
    show, if a broker comes or goes meanwhile.
    """
    partitions = ElectedPartitions(topic=topic, partitions=[*cluster.tree.partitions(topic)])
    request = ElectLeadersRequest(topic_partitions=[partitions], timeout_ms=ELECTION_TIMEOUT_MS)

    def elect() -> set[int]:
        controller = cluster.await_controller()
        with RawClient(cluster.host(controller), cluster.ports[controller]) as client:
            return set(error_codes(client.call(request, 2)))

    eventually(
        elect,
        accept=lambda errors: errors <= {ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED},
        timeout_s=SETTLE_TIMEOUT_S,
    )


def move_leaders(cluster: Cluster, topic: str, shift: int) -> None:
    """Another order of the replicas and a preferred election: every partition gets another leader."""
    partitions = cluster.tree.partitions(topic)
    reassign(cluster, {(topic, p): rotated(p + shift) for p in partitions})
    elect_preferred(cluster, topic)
    wanted = {p: rotated(p + shift)[0] for p in partitions}
    eventually(
        lambda: {p: state.leader for p, state in cluster.tree.partitions(topic).items()},
        accept=lambda leaders: leaders == wanted,
        timeout_s=SETTLE_TIMEOUT_S,
    )


def loads(cluster: Cluster, suffix: str, pause_s: float = 0.03) -> dict[str, Load]:
    """An idempotent and a plain load on topics of their own, led by every broker.

    Each partition has acknowledged something, so all replicas know the producer: to one that does not, whatever comes
    first is its beginning, also what was sent second, and then a producer cannot go on. One request in flight:
    librdkafka may send a second one to the new leader before it repeats the first there, takes a new epoch when either
    kind of broker refuses it, and sends once more what was written already.
    """
    started = {}
    for name in ("idempotent", "plain"):
        topic = cluster.admin().create_assigned_topic(
            f"{name}-{suffix}", [rotated(p) for p in range(PARTITIONS)], {"min.insync.replicas": "2"}
        )
        cluster.await_complete(topic)
        cluster.await_known(topic)
        started[name] = Load(
            cluster.bootstrap, topic, idempotent=name == "idempotent", pause_s=pause_s, max_in_flight=1
        )
    for load in started.values():
        load.await_progress()
    return started


def check_loads(cluster: Cluster, by_name: Mapping[str, Load]) -> None:
    """Nothing acknowledged is lost; records of the idempotent load are there once, in order."""
    for name, load in by_name.items():
        if name == "idempotent":
            check_complete(load, cluster.bootstrap)
            continue
        for partition in range(PARTITIONS):
            check_acknowledged(load, partition, read_all(cluster.bootstrap, load.topic, partition))


class Group:
    """A consumer group that commits the offsets it is given. Its consumer is replaced when it hangs, as `group_reader`
    explains: no answer of a broker makes a call exceed the limit that it was given, so this hides no fault of a broker.
    The next consumer begins at the committed offsets, when the session of the first one has ended. A commit has no such
    limit: one that hangs fails the test.

    `metadata.recovery.strategy` stays at librdkafka's default, `rebootstrap`: before its first UpdateMetadata, Apache
    Kafka's broker answers Metadata without any broker. librdkafka then removes all brokers that it knows, and with
    `none` it never asks one again.
    """

    def __init__(
        self,
        cluster: Cluster,
        name: str,
        topic: str,
        *,
        session_timeout_s: int = SESSION_TIMEOUT_S,
    ) -> None:
        self._topic = topic
        self._session_timeout_s = session_timeout_s
        self._config: dict[str, str | int | bool] = {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": name,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": session_timeout_s * 1000,
            **COMMITS_WHILE_COORDINATORS_MOVE,
            "log_level": 0,
        }
        cluster.await_known(topic)  # a client asks for an unknown topic again only after minutes
        self.reader = ReaderProcess(self._config, topic)

    def read(self, count: int, *, hangs_after_s: float = HANGS_AFTER_S) -> list[bytes]:
        """The next records, committed. `hangs_after_s`: of the consumer that there is; for its successor nothing is
        known.
        """
        try:
            found = self._read(count, SETTLE_TIMEOUT_S, hangs_after_s)
        except HangsError:
            self._replace()
            found = self._read(count, self._session_timeout_s + SETTLE_TIMEOUT_S, HANGS_AFTER_S)
        eventually(lambda: self.reader.call(GroupReader.commit, CALL_TIMEOUT_S), timeout_s=SETTLE_TIMEOUT_S)
        return found

    def _read(self, count: int, timeout_s: float, hangs_after_s: float) -> list[bytes]:
        found: list[bytes] = []

        def read_some() -> int:
            found.extend(self.reader.call(partial(GroupReader.read, count=count - len(found)), hangs_after_s))
            return len(found)

        try:
            eventually(read_some, accept=lambda total: total >= count, timeout_s=timeout_s)
        except AssertionError as stuck:
            raise AssertionError(f"{stuck}; {self.reader.call(GroupReader.state, CALL_TIMEOUT_S)}") from None
        return found

    def committed(self) -> int:
        """The committed offset of partition 0, once the coordinator knows it."""
        try:
            return self._committed()
        except HangsError:
            self._replace()
            return self._committed()

    def _committed(self) -> int:
        offset = eventually(
            lambda: self.reader.call(GroupReader.committed, CALL_TIMEOUT_S),
            accept=lambda found: found is not None,
            timeout_s=SETTLE_TIMEOUT_S,
        )
        assert offset is not None
        return offset

    def _replace(self) -> None:
        self.reader.kill()
        self.reader = ReaderProcess(self._config, self._topic)

    def close(self) -> None:
        with suppress(HangsError):
            self.reader.call(GroupReader.close, CALL_TIMEOUT_S)
        self.reader.kill()


def transact(cluster: Cluster, topic: str, ids: Sequence[str]) -> list[str]:
    """One committed and one aborted transaction of each id; returns the values that must be visible."""
    client = ConfluentTransactions()
    for name in ids:
        producer = client.producer(cluster.bootstrap, name)
        producer.begin()
        producer.send(topic, f"{name} committed")
        producer.commit()
        producer.begin()
        producer.send(topic, f"{name} aborted")
        producer.abort()
        producer.close()
    return [f"{name} committed" for name in ids]


def await_gone(cluster: Cluster, topic: str, ids: Sequence[int] = BROKERS) -> None:
    """Wait until none of these brokers has a replica of the topic."""
    eventually(
        lambda: [d for i in ids for d in partition_dirs(cluster.log_dir(i)) if d.rpartition("-")[0] == topic],
        accept=lambda found: not found,
        timeout_s=SETTLE_TIMEOUT_S,
    )


def dump_problems(cluster: Cluster, topics: Sequence[str]) -> list[str]:
    """The problems that kafka-dump-log finds in the replicas of these topics. Of Apache's brokers it reads only
    the logs, because it finds problems in their indexes while they run. An index whose entries were all truncated is
    left out: its first zeros are an entry for the tool.
    """
    runs = []
    for topic in topics:
        for partition in cluster.tree.partitions(topic):
            for broker_id, broker in cluster.brokers.items():
                suffixes = (".index", ".timeindex") if broker.target == "odradek" else ()
                logs = [log for log in log_files(cluster.log_dir(broker_id), topic, partition) if log.stat().st_size]
                indexes = [log.with_suffix(suffix) for log in logs for suffix in suffixes]
                files = [*logs, *(index for index in indexes if any(index.read_bytes()))]
                if files:
                    runs.append(["--deep-iteration", *files_argument(files)])
    complaints = (
        *("ismatch", "Index offset", "Index timestamp", "Non-consecutive"),
        *("ouldn't", "isvalid: false", "rror", "xception"),
    )
    return [
        line
        for printed in kafka_prints(runs)
        for line in (printed.stdout + printed.stderr).splitlines()
        if any(word in line for word in complaints)
    ]
