"""A broker that has no UpdateMetadata yet: clients wait for its first answer."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from kazoo.client import KazooClient

from odradek.broker.metadata.first_metadata import FIRST_METADATA_WAIT_MS
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.support.broker import FAST_SETTINGS
from tests.support.loads.faulted_clients import Java
from tests.support.processes.apache.apache import ZooKeeper
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.wire.raw_client import ConnectionClosedError, RawClient
from tests.support.wire.requests import build

NOBODY = 99
TIMEOUT_S = 30
METADATA = build(ApiKey.METADATA, topics=None)
CLUSTER = build(ApiKey.DESCRIBE_CLUSTER)
COORDINATOR = build(ApiKey.FIND_COORDINATOR, key_type=0, coordinator_keys=["g"])


@pytest.fixture
def connect(zookeeper: ZooKeeper) -> str:
    return zookeeper.new_chroot()


@pytest.fixture
def absent_controller(connect: str) -> Iterator[KazooClient]:
    """The node of a controller that tells nobody anything. Closing the client removes it."""
    hosts, _, chroot = connect.partition("/")
    client = KazooClient(hosts=hosts)
    client.start()
    client.ensure_path(f"/{chroot}")
    node = {"version": 2, "brokerid": NOBODY, "timestamp": "0", "kraftControllerEpoch": -1}
    client.create(f"/{chroot}/controller", json.dumps(node).encode(), ephemeral=True)
    yield client
    client.stop()
    client.close()


@pytest.fixture
def member(connect: str, absent_controller: KazooClient, tmp_path: Path) -> Iterator[OdradekBroker]:
    broker = OdradekBroker(
        tmp_path,
        {**FAST_SETTINGS, "zookeeper.connect": connect, "broker.id": "3", "controlled.shutdown.enable": "false"},
    )
    broker.start()
    yield broker
    broker.close()


def test_clients_wait_for_the_first_word_of_the_controller(
    member: OdradekBroker, absent_controller: KazooClient
) -> None:
    clients = [RawClient(member.host, member.port) for _ in range(3)]
    for client, request, version in zip(clients, (METADATA, CLUSTER, COORDINATOR), (9, 0, 4), strict=True):
        client.send(request, version)
    with RawClient(member.host, member.port) as client:
        client.call(build(ApiKey.API_VERSIONS), 0)  # asks nothing of the cluster
    with RawClient(member.host, member.port, timeout_s=0.5) as other:
        other.send(METADATA, 9)
        with pytest.raises(TimeoutError):
            other.receive(ApiKey.METADATA, 9)
    absent_controller.stop()
    metadata, cluster, coordinator = (
        client.receive(key, version)
        for client, key, version in zip(
            clients, (ApiKey.METADATA, ApiKey.DESCRIBE_CLUSTER, ApiKey.FIND_COORDINATOR), (9, 0, 4), strict=True
        )
    )
    assert [found.node_id for found in metadata.brokers] == [3]  # type: ignore[attr-defined]
    assert metadata.controller_id == 3  # type: ignore[attr-defined]
    assert [found.broker_id for found in cluster.brokers] == [3]  # type: ignore[attr-defined]
    assert coordinator.coordinators[0].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE  # type: ignore[attr-defined]
    for client in clients:
        client.close()


def test_a_stop_waits_for_nobody_who_waits(member: OdradekBroker) -> None:
    with RawClient(member.host, member.port) as client:
        client.send(METADATA, 9)
        started = time.monotonic()
        member.stop()
        assert time.monotonic() - started < FIRST_METADATA_WAIT_MS / 1000


def test_an_admin_client_that_waits_creates_a_topic(member: OdradekBroker, absent_controller: KazooClient) -> None:
    """After an answer without brokers librdkafka would not ask again, and the request would time out."""
    admin = AdminClient({"bootstrap.servers": member.bootstrap})
    created = admin.create_topics([NewTopic("late", 1, 1)], request_timeout=TIMEOUT_S)["late"]
    with RawClient(member.host, member.port, timeout_s=0.5) as client, pytest.raises(TimeoutError):
        client.call(METADATA, 9)
    absent_controller.stop()
    created.result(TIMEOUT_S)


def test_an_admin_client_whose_connection_was_closed_creates_a_topic(
    member: OdradekBroker, absent_controller: KazooClient
) -> None:
    """Apache Kafka's own client. librdkafka 2.16 may not ask again: the request that was lost counts as under way until
    its main thread has seen the error, and it may have connected again before that.
    """
    admin = Java()
    with ThreadPoolExecutor(1) as pool, closing(admin):
        created = pool.submit(admin.run, "create", member.bootstrap, "late")
        with RawClient(member.host, member.port) as client, pytest.raises(ConnectionClosedError):
            client.call(METADATA, 9)
        absent_controller.stop()
        assert created.result() == "created"


TOPICS = [f"topic-{number}" for number in range(200)]


def first_answer(broker: OdradekBroker, topic: str) -> tuple[int, int]:
    """What a broker that has just been launched says first of a topic: the error, and the leader of its partition."""
    deadline = time.monotonic() + broker.start_timeout_s
    while True:
        try:
            client = RawClient(broker.host, broker.port)
            break
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.001)
    with client:
        request = build(ApiKey.METADATA, topics=[{"name": topic}], allow_auto_topic_creation=True)
        [found] = client.call(request, 9).topics  # type: ignore[attr-defined]
    return found.error_code, found.partitions[0].leader_id if found.partitions else -1


@pytest.mark.parametrize("metadata", ["embedded", "zookeeper"])
def test_the_first_answer_after_a_start_names_the_leader_of_a_topic(
    metadata: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    settings = {"broker.id": "3"}
    if metadata == "zookeeper":
        settings = {**FAST_SETTINGS, **settings, "zookeeper.connect": request.getfixturevalue("connect")}
    broker = OdradekBroker(tmp_path, settings)
    broker.start()
    try:
        with RawClient(broker.host, broker.port) as client:
            described = [{"name": topic, "num_partitions": 1, "replication_factor": 1} for topic in TOPICS]
            created = client.call(build(ApiKey.CREATE_TOPICS, topics=described, timeout_ms=30_000), 5)
        assert {topic.error_code for topic in created.topics} == {ErrorCode.NONE}  # type: ignore[attr-defined]
        if metadata == "embedded":
            broker.kill()
        else:
            broker.stop()  # a session in ZooKeeper would outlive a killed broker
        for checkpoint in broker.log_dir.glob("*/leader-epoch-checkpoint"):
            checkpoint.unlink()  # LeaderAndIsr is answered, and so partitions are named, when all are written again
        broker.launch()
        assert first_answer(broker, TOPICS[-1]) == (ErrorCode.NONE, 3)
    finally:
        broker.close()
