"""Many ACLs in a ZooKeeper: read at the start of a broker, and changed while clients write to the brokers.

The soak test has 10,000: a start reads them within a second.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

import pytest
from kazoo.client import KazooClient

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.zookeeper_config import zookeeper_settings
from odradek.broker.security.authorizer.acl_authorizer import AclAuthorizer
from odradek.controller.tree.zookeeper_tree import ZooKeeperTree
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.protocol.api import ApiKey
from odradek.timer.clock import SystemClock
from odradek.timer.system_timer import SystemTimer
from tests.support.async_test import async_test
from tests.support.loads.hostile.hostile_input import Watch
from tests.support.processes.apache.apache import ZooKeeper
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port
from tests.support.transcripts.secured import ACL_AUTHORIZER
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import batch, build

LOAD_S: Final = 1.0
PAUSE_S: Final = 0.05
"""What a callback of the event loop may take at most."""
AT_ONCE: Final = 1000
"""Nodes of one transaction of ZooKeeper."""
BROKERS: Final = (0, 1)
TOPIC, ALL, ALLOW, LITERAL, PREFIXED = 2, 2, 3, 3, 4
ANYTHING: Final = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}
SPREAD_S: Final = 60.0


@pytest.fixture(params=[500, pytest.param(10_000, marks=[pytest.mark.soak, pytest.mark.timeout(0)])])
def count(request: pytest.FixtureRequest) -> int:
    chosen: int = request.param
    return chosen


def name_of(number: int) -> str:
    return f"team{number % 97:02}.orders{number:05}"


def write_acls(connect: str, count: int) -> None:
    """Half of them literal, half prefixed, in Apache Kafka's nodes."""
    address, _, chroot = connect.partition("/")
    entry = {"permissionType": "Allow", "operation": "Read", "host": "*"}
    client = KazooClient(hosts=address)
    client.start()
    try:
        stores = [f"/{chroot}/kafka-acl/Topic", f"/{chroot}/kafka-acl-extended/prefixed/Topic"]
        for path in stores:
            client.ensure_path(path)
        for first in range(0, count, AT_ONCE):
            with client.transaction() as transaction:
                for number in range(first, min(first + AT_ONCE, count)):
                    acls = [{"principal": f"User:u{number % 100}", **entry}]
                    data = json.dumps({"version": 1, "acls": acls}).encode()
                    transaction.create(f"{stores[number % 2]}/{name_of(number)}", data)
    finally:
        client.stop()
        client.close()


@async_test
async def test_a_start_reads_them_within_a_second(zookeeper: ZooKeeper, count: int) -> None:
    connect = zookeeper.new_chroot()
    write_acls(connect, count)
    tree = await ZooKeeperTree.open(zookeeper_settings(BrokerConfig({"zookeeper.connect": connect}), None))
    clock = SystemClock()
    authorizer = AclAuthorizer(MetadataClient(tree), clock, SystemTimer(clock), lambda number: 0)
    try:
        began, used = time.monotonic(), time.process_time()
        await authorizer.start()
        took_s, used_s = time.monotonic() - began, time.process_time() - used
    finally:
        authorizer.close()
        await tree.close()
    print(f"{count} ACLs are read in {took_s:.2f} s, {used_s:.2f} s of processor time")
    assert authorizer.acl_count == count
    assert used_s <= LOAD_S


@pytest.fixture
def brokers(zookeeper: ZooKeeper, tmp_path: Path) -> Iterator[Sequence[OdradekBroker]]:
    """Each leads the one partition of the topic `of-0` or `of-1`."""
    settings = {
        "zookeeper.connect": zookeeper.new_chroot(),
        "authorizer.class.name": ACL_AUTHORIZER,
        "allow.everyone.if.no.acl.found": "true",
    }
    made = [OdradekBroker(tmp_path / str(n), {**settings, "broker.id": str(n)}, free_port()) for n in BROKERS]
    try:
        for broker in made:
            broker.start()
        with RawClient(made[0].host, made[0].port) as client:
            for number in BROKERS:
                assigned = [{"partition_index": 0, "broker_ids": [number]}]
                topic = {"name": f"of-{number}", "num_partitions": -1, "replication_factor": -1}
                new = build(ApiKey.CREATE_TOPICS, topics=[{**topic, "assignments": assigned}], timeout_ms=10_000)
                client.call(new, 5)
        yield made
        for broker in reversed(made):
            broker.stop_cleanly()
    finally:
        for broker in made:
            broker.close()


def write(number: int) -> Any:
    """A record for the topic that this broker leads."""
    data = [{"name": f"of-{number}", "partition_data": [{"index": 0, "records": batch(b"v")}]}]
    return build(ApiKey.PRODUCE, acks=1, timeout_ms=5000, topic_data=data)


def creations(count: int) -> list[dict[str, object]]:
    """Every tenth is about the clients' topics."""
    common = {"resource_type": TOPIC, "host": "*", "operation": ALL, "permission_type": ALLOW}
    patterns = [
        (f"of-{number // 10 % 2}", LITERAL) if number % 10 == 0 else (name_of(number), (LITERAL, PREFIXED)[number % 2])
        for number in range(count)
    ]
    of_clients = [{**common, "resource_name": "of-", "resource_pattern_type": PREFIXED, "principal": "User:*"}]
    return of_clients + [
        {**common, "resource_name": name, "resource_pattern_type": kind, "principal": f"User:u{number}"}
        for number, (name, kind) in enumerate(patterns)
    ]


def known(broker: OdradekBroker) -> int:
    """How many ACLs the broker tells."""
    with RawClient(broker.host, broker.port) as client:
        answer: Any = client.call(build(ApiKey.DESCRIBE_ACLS, **ANYTHING), 3)
    return sum(len(resource.acls) for resource in answer.resources)


def test_changes_delay_no_client(brokers: Sequence[OdradekBroker], count: int) -> None:
    """The first broker gets the changes, and the other reads them; each has a client that writes."""
    for number, broker in enumerate(brokers):
        with RawClient(broker.host, broker.port) as client:
            eventually(
                lambda client=client, number=number: client.call(write(number), 8),  # type: ignore[misc]
                accept=lambda answer: answer.responses[0].partition_responses[0].error_code == 0,  # type: ignore[attr-defined]
            )
    watches = [Watch(broker, write(number), 8) for number, broker in enumerate(brokers)]
    new = creations(count)
    with ExitStack() as stack:
        for watch in watches:
            stack.enter_context(watch.looking())
        with RawClient(brokers[0].host, brokers[0].port) as admin:
            began = time.monotonic()
            created: Any = admin.call(build(ApiKey.CREATE_ACLS, creations=new), 3)
            assert {result.error_code for result in created.results} == {0}
            created_s = time.monotonic() - began
            eventually(lambda: known(brokers[1]), accept=len(new).__eq__, timeout_s=SPREAD_S)
            spread_s = time.monotonic() - began
            began = time.monotonic()
            deleted: Any = admin.call(build(ApiKey.DELETE_ACLS, filters=[ANYTHING]), 3)
            assert len(deleted.filter_results[0].matching_acls) == len(new)
            deleted_s = time.monotonic() - began
            eventually(lambda: known(brokers[1]), accept=(0).__eq__, timeout_s=SPREAD_S)
    print(
        f"{len(new)} ACLs created in {created_s:.2f} s, on the other broker after {spread_s:.2f} s, deleted in "
        f"{deleted_s:.2f} s; where they are changed: {watches[0].text}; on the other broker: {watches[1].text}"
    )
    assert max(watch.longest_s for watch in watches) < PAUSE_S
