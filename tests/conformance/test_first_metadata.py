"""A member of a cluster that nobody has told anything yet: clients wait for the answer that there will be."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from odradek.broker.first_metadata import FIRST_METADATA_WAIT_MS
from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from tests.support.apache import ZooKeeper
from tests.support.broker import FAST_SETTINGS
from tests.support.odradek_process import OdradekBroker
from tests.support.raw_client import RawClient
from tests.support.requests import build

NOBODY = 99
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
    with RawClient(member.host, member.port, timeout_s=0.5) as other:
        other.call(build(ApiKey.API_VERSIONS), 0)  # asks nothing of the cluster
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
