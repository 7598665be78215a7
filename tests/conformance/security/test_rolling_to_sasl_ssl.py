"""A running cluster moves from PLAINTEXT to SASL_SSL one broker at a time, as Apache Kafka's documentation describes.

A producer and a consumer work all the time. They change over while the brokers have both listeners.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import Final, Self

import confluent_kafka
import pytest
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.conformance.security.conftest import Certificates
from tests.support.clusters.cluster import SETTINGS, described_by
from tests.support.clusters.cluster_tree import ClusterTree
from tests.support.processes.apache.apache import ApacheBroker, ZooKeeper
from tests.support.processes.odradek_process import STARTED, OdradekBroker
from tests.support.processes.ports import free_port
from tests.support.processes.sasl_listeners import CANARY, PASSWORDS, client_jaas
from tests.support.waiting import eventually

pytestmark = pytest.mark.oracle

BROKERS: Final = (0, 1, 2)
MECHANISM: Final = "SCRAM-SHA-512"
TOPIC: Final = "moved"
PARTITIONS: Final = 3
TIMEOUT_S: Final = 60
PLAINTEXT, SASL_SSL = "PLAINTEXT", "SASL_SSL"
ONLY_PLAINTEXT: Final = ((PLAINTEXT,), PLAINTEXT)
STEPS: Final = (
    ((PLAINTEXT, SASL_SSL), PLAINTEXT),
    ((PLAINTEXT, SASL_SSL), SASL_SSL),
    ((SASL_SSL,), SASL_SSL),
)
"""The listeners of a broker, and the one between brokers."""

Step = tuple[tuple[str, ...], str]
Config = dict[str, str]


class MovingCluster:
    """Three brokers of both kinds: each keeps its ports and its directory."""

    def __init__(self, directory: Path, connect: str, certificates: Certificates, kinds: tuple[str, ...]) -> None:
        self._directory = directory
        self._kinds = kinds
        self._connect = connect
        self._certificates = certificates
        self._ports = [{name: free_port() for name in (PLAINTEXT, SASL_SSL)} for _ in BROKERS]
        self.brokers = [self._make(broker_id, ONLY_PLAINTEXT) for broker_id in BROKERS]
        self._open = ExitStack()

    def _make(self, broker_id: int, step: Step) -> OdradekBroker | ApacheBroker:
        names, between = step
        settings = {
            **SETTINGS,
            "broker.id": str(broker_id),
            "zookeeper.connect": self._connect,
            "min.insync.replicas": "2",
            "listeners": ",".join(f"{name}://127.0.0.1:{self._ports[broker_id][name]}" for name in names),
            "security.inter.broker.protocol": between,
        }
        if SASL_SSL in names:
            settings |= self._certificates.broker_settings() | {
                "sasl.enabled.mechanisms": MECHANISM,
                "sasl.mechanism.inter.broker.protocol": MECHANISM,
                "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": client_jaas(MECHANISM, "admin"),
            }
        directory = self._directory / f"broker-{broker_id}"
        if self._kinds[broker_id] == "apache":
            return ApacheBroker(directory, self._connect, settings)
        return OdradekBroker(directory, {**settings, "log.dirs": str(directory / "logs")})

    @cached_property
    def tree(self) -> ClusterTree:
        """Used when a broker has started: the brokers create the chroot."""
        return self._open.enter_context(closing(ClusterTree(self._connect)))

    def start(self) -> None:
        """Start all brokers; when it returns, each of them names the controller and the other brokers to clients."""
        for broker in self.brokers:
            broker.launch()
        for broker in self.brokers:
            broker.wait_for_line(STARTED)
        eventually(self.tree.broker_ids, accept=lambda ids: ids == {*BROKERS}, timeout_s=TIMEOUT_S)
        for ports in self._ports:
            described = partial(described_by, "127.0.0.1", ports[PLAINTEXT])
            eventually(
                described,
                accept=lambda view: view.controller in BROKERS and view.brokers == {*BROKERS},
                timeout_s=TIMEOUT_S,
            )

    def restart(self, broker_id: int, step: Step) -> None:
        """A controlled shutdown and a start with the settings of the step; returns when all replicas are in sync."""
        self.brokers[broker_id].stop()
        self.check_log(broker_id)
        self.brokers[broker_id] = self._make(broker_id, step)
        self.brokers[broker_id].launch()
        self.brokers[broker_id].wait_for_line(STARTED)
        for topic in (TOPIC, "__consumer_offsets"):
            eventually(
                lambda topic=topic: (self.tree.is_complete(topic), self.tree.partitions(topic)),  # type: ignore[misc]
                accept=lambda seen: seen[0],
                timeout_s=TIMEOUT_S,
            )

    def check_log(self, broker_id: int) -> None:
        log = self.brokers[broker_id].log_text()
        assert CANARY not in log
        if self._kinds[broker_id] == "odradek":
            assert "Traceback" not in log, log[log.index("Traceback") - 300 :][:4000]

    def client(self, protocol: str) -> Config:
        bootstrap = ",".join(f"127.0.0.1:{ports[protocol]}" for ports in self._ports)
        if protocol == PLAINTEXT:
            return {"bootstrap.servers": bootstrap}
        return {
            "bootstrap.servers": bootstrap,
            "security.protocol": protocol,
            "ssl.ca.location": str(self._certificates.ca),
            "sasl.mechanism": MECHANISM,
            "sasl.username": "alice",
            "sasl.password": PASSWORDS["alice"],
        }

    def close(self) -> None:
        for broker in self.brokers:
            broker.close()
        self._open.close()


class Work:
    """A producer of numbers and a member of a group, each in a thread of its own, from `with` to its end."""

    def __init__(self, settings: Config, first: int) -> None:
        self._settings = settings
        self.next_number = first
        self.acknowledged: dict[int, tuple[int, int | None]] = {}
        """The partition and the offset of each number. The offset is None if librdkafka learnt that the record
        is stored from the answer to a later batch, because the answer to its own batch was NOT_LEADER_OR_FOLLOWER
        or lost (`rd_kafka_dr_implicit_ack`)."""
        self.failed: list[str] = []
        self.received: dict[int, dict[int, int]] = {partition: {} for partition in range(PARTITIONS)}
        """The numbers of each partition by their offset. The consumer's thread adds to them until
        the end; other threads may only ask for their lengths."""
        self.largest_received = -1
        self._ends = threading.Event()
        self._threads = [threading.Thread(target=work) for work in (self._produce, self._consume)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()

    def _delivered(self, error: confluent_kafka.KafkaError | None, message: confluent_kafka.Message) -> None:
        number = int(message.value())
        if error is not None:
            self.failed.append(f"{number}: {error}")
        else:
            assert number not in self.acknowledged
            self.acknowledged[number] = (message.partition(), message.offset())

    def _produce(self) -> None:
        producer = confluent_kafka.Producer(
            self._settings | {"acks": "all", "enable.idempotence": "true", "linger.ms": "5"}
        )
        while not self._ends.wait(0.002):
            number = self.next_number
            producer.produce(TOPIC, str(number).encode(), partition=number % PARTITIONS, on_delivery=self._delivered)
            self.next_number = number + 1
            producer.poll(0)
        if left := producer.flush(TIMEOUT_S):
            self.failed.append(f"{left} records are not acknowledged in {TIMEOUT_S} s")

    def _consume(self) -> None:
        consumer = confluent_kafka.Consumer(
            self._settings | {"group.id": "group", "auto.offset.reset": "earliest", "auto.commit.interval.ms": "200"}
        )
        consumer.subscribe([TOPIC])
        while not self._ends.is_set():
            for message in consumer.consume(500, 0.2):
                if message.error() is None:
                    number = int(message.value())
                    self.received[message.partition()][message.offset()] = number
                    self.largest_received = max(self.largest_received, number)
        consumer.close()


@pytest.fixture(
    params=[
        ("odradek", "apache", "odradek"),
        pytest.param(("apache", "odradek", "apache"), marks=pytest.mark.soak),
    ],
    ids="-".join,
)
def cluster(
    request: pytest.FixtureRequest, certificates: Certificates, zookeeper: ZooKeeper, tmp_path: Path
) -> Iterator[MovingCluster]:
    with closing(MovingCluster(tmp_path, zookeeper.new_chroot(), certificates, request.param)) as cluster:
        cluster.start()
        yield cluster


def prepare(cluster: MovingCluster) -> None:
    """The topic and the users exist before the first broker has a listener for the users."""
    admin = AdminClient(cluster.client(PLAINTEXT))
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])[TOPIC].result(TIMEOUT_S)
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
    users = [UserScramCredentialUpsertion(user, scram, password.encode()) for user, password in PASSWORDS.items()]
    for future in admin.alter_user_scram_credentials(users).values():
        future.result(TIMEOUT_S)


@contextmanager
def working(cluster: MovingCluster, protocol: str, first: int) -> Iterator[Work]:
    """The work goes on until records of this producer have come to the consumer."""
    with Work(cluster.client(protocol), first) as work:
        eventually(lambda: min(map(len, work.received.values())) > 0, timeout_s=TIMEOUT_S)
        yield work
        end = work.next_number
        eventually(lambda: work.largest_received >= end, timeout_s=TIMEOUT_S)
    assert work.failed == []


def read_all(settings: Config) -> dict[tuple[int, int], int]:
    """Each number of the topic by its partition and its offset."""
    consumer = confluent_kafka.Consumer(settings | {"group.id": "reader", "enable.partition.eof": "true"})
    consumer.assign([confluent_kafka.TopicPartition(TOPIC, partition, 0) for partition in range(PARTITIONS)])
    found: dict[tuple[int, int], int] = {}
    ended: set[int] = set()
    while len(ended) < PARTITIONS:
        message = consumer.poll(TIMEOUT_S)
        assert message is not None, "no record and no end of a partition"
        if (error := message.error()) is None:
            found[message.partition(), message.offset()] = int(message.value())
        elif error.code() == confluent_kafka.KafkaError._PARTITION_EOF:
            ended.add(message.partition())
    consumer.close()
    return found


def test_no_record_is_lost_and_none_is_there_twice(cluster: MovingCluster) -> None:
    prepare(cluster)
    opened, secured, closed = STEPS
    with working(cluster, PLAINTEXT, 0) as before:
        for broker_id in BROKERS:
            cluster.restart(broker_id, opened)
    with working(cluster, SASL_SSL, before.next_number) as after:
        for step in (secured, closed):
            for broker_id in BROKERS:
                cluster.restart(broker_id, step)
    stored = read_all(cluster.client(SASL_SSL))
    acknowledged = before.acknowledged | after.acknowledged
    assert acknowledged.keys() == set(range(after.next_number))
    assert Counter(stored.values()) == Counter(acknowledged.keys())
    places = {number: place for place, number in stored.items()}
    answered = {number: place for number, place in acknowledged.items() if place[1] is not None}
    assert [(number, place, places[number]) for number, place in answered.items() if place != places[number]] == []
    assert len(answered) > len(acknowledged) * 0.9
    received = {
        (partition, offset): number
        for work in (before, after)
        for partition, found in work.received.items()
        for offset, number in found.items()
    }
    ends = {partition: max(found) for partition, found in after.received.items()}
    expected = {place: number for place, number in stored.items() if place[1] <= ends[place[0]]}
    assert sorted(received.items() ^ expected.items()) == []
    for broker_id in BROKERS:
        cluster.brokers[broker_id].stop()
        cluster.check_log(broker_id)
