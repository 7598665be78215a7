"""One Odradek broker with a real ZooKeeper: its nodes, and failures that it survives."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import NewTopic

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.server import KafkaServer
from odradek.controller.tree.metadata_tree import GetData
from odradek.controller.tree.zookeeper_settings import hosts_and_chroot
from odradek.controller.tree.zookeeper_tree import ZooKeeperTree
from odradek.controller.znodes import znodes
from odradek.controller.znodes.metadata_client import MetadataClient
from odradek.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from odradek.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.conformance.zookeeper.tree_dump import dumped
from tests.support.admin import ADMIN_TIMEOUT_S, Admin
from tests.support.async_test import async_test
from tests.support.broker import FAST_SETTINGS, Broker
from tests.support.clusters.zookeeper_sessions import expire_session
from tests.support.processes.apache.apache import ApacheBroker, ZooKeeper
from tests.support.processes.apache.tools import Tools
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.processes.ports import free_port
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient

MakeMember = Callable[..., OdradekBroker]
TOPIC, BROKER = 2, 4  # as resource types
KAFKAS_OWN = "Kafka's own default"


class _Member(OdradekBroker):
    """With these settings and no others."""

    def __init__(self, directory: Path, settings: dict[str, str], port: int) -> None:
        super().__init__(directory, port=port)
        self._settings = settings


@pytest.fixture
def member(tmp_path: Path) -> Iterator[MakeMember]:
    """Makes Odradek brokers of a cluster: `member(connect, **{"broker.id": "1"})`; the test starts them."""
    made: list[OdradekBroker] = []

    def make(connect: str, directory: str = "", **settings: str) -> OdradekBroker:
        keys = {**FAST_SETTINGS, "zookeeper.connect": connect, **settings}
        for key in [key for key, value in keys.items() if value == KAFKAS_OWN]:
            del keys[key]
        made.append(_Member(tmp_path / (directory or f"member-{len(made)}"), keys, free_port()))
        return made[-1]

    yield make
    for broker in made:
        broker.close()


def set_config(broker: Broker, kind: int, name: str, key: str, value: str) -> None:
    """Set one config; clients in Python do not know the empty name, which stands for all brokers."""
    resource = AlterConfigsResource(
        resource_type=kind, resource_name=name, configs=[AlterableConfig(name=key, config_operation=0, value=value)]
    )
    with RawClient(broker.host, broker.port) as client:
        (result,) = client.call(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    assert result.error_code == 0, result


def use(broker: Broker) -> None:
    """What a cluster's life leaves traces of."""
    admin = Admin(broker.bootstrap)
    admin.create_topic("kept", 3)
    admin.create_topic("configured", 1, {"retention.ms": "3600000", "cleanup.policy": "compact"})
    admin.create_topic("deleted", 2)
    admin.create_partitions("kept", 5)
    set_config(broker, TOPIC, "kept", "segment.bytes", "1048576")
    set_config(broker, BROKER, "0", "log.cleaner.threads", "2")
    set_config(broker, BROKER, "", "message.max.bytes", "2000000")
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True})
    for number in range(10):
        producer.produce("kept", b"%d" % number)
    producer.produce("created-by-use", b"")
    assert producer.flush(ADMIN_TIMEOUT_S) == 0
    transactional = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "t"})
    transactional.init_transactions(ADMIN_TIMEOUT_S)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["kept"])
    assert len(consumer.consume(10, ADMIN_TIMEOUT_S)) == 10
    consumer.commit(asynchronous=False)
    consumer.close()
    admin.delete_topic("deleted")


def test_what_is_left_in_zookeeper_is_what_apache_leaves(
    zookeeper: ZooKeeper, member: MakeMember, tmp_path: Path
) -> None:
    connects = [zookeeper.new_chroot(), zookeeper.new_chroot()]
    apache = ApacheBroker(tmp_path / "apache", connects[0], {"broker.rack": "r1"})
    odradek = member(connects[1], **{"broker.rack": "r1"})
    dumps = []
    for broker, connect in ((apache, connects[0]), (odradek, connects[1])):
        broker.start()
        try:
            use(broker)
            # The node of the deletion is the last one that a controller removes.
            eventually(lambda connect=connect: "/admin/delete_topics/deleted" not in dumped(connect, port=0))
            dumps.append((dumped(connect, port=broker.port), broker.stop(), dumped(connect, port=broker.port)))
        finally:
            broker.close()
    for theirs, ours in ((dumps[0][0], dumps[1][0]), (dumps[0][2], dumps[1][2])):
        assert ours == theirs


def test_kafkas_tools_work_on_it(zookeeper: ZooKeeper, member: MakeMember, tools: Tools) -> None:
    broker = member(zookeeper.new_chroot(), **{"offsets.topic.replication.factor": KAFKAS_OWN, "broker.rack": "r1"})
    broker.start()
    server = ("--bootstrap-server", broker.bootstrap)
    tools.run("topics", *server, "--create", "--topic", "t", "--partitions", "2", "--replication-factor", "1")
    described = tools.run("topics", *server, "--describe", "--topic", "t").stdout
    assert "Leader: 0" in described
    assert "Isr: 0" in described
    too_many = tools.run("topics", *server, "--create", "--topic", "u", "--replication-factor", "2", status=1)
    assert "Replication factor: 2 larger than available brokers: 1." in too_many.stdout
    configs = tools.run("configs", *server, "--describe", "--broker", "0", "--all").stdout
    assert "offsets.topic.replication.factor=3 " in configs
    assert "broker.id.generation.enable=true" in configs


@async_test
async def test_an_expired_broker_registers_anew_and_is_elected_again(zookeeper: ZooKeeper, tmp_path: Path) -> None:
    connect = zookeeper.new_chroot()
    settings = {**FAST_SETTINGS, "zookeeper.connect": connect, "listeners": "PLAINTEXT://127.0.0.1:0"}
    server = KafkaServer(BrokerConfig({**settings, "log.dirs": str(tmp_path)}))
    await server.start()
    try:
        services, tree = server._services, server._tree
        assert services is not None
        assert isinstance(tree, ZooKeeperTree)
        controller, client = services.controller, MetadataClient(tree)
        admin = await asyncio.to_thread(Admin, f"127.0.0.1:{server.addresses[0].port}")
        await asyncio.to_thread(admin.create_topic, "before")
        for round_ in (2, 3, 4):
            epoch = controller.broker_epoch
            await expire_session(hosts_and_chroot(connect)[0], tree)
            while not (controller.is_active and controller.broker_epoch > epoch):
                await asyncio.sleep(0.01)
            registered = await tree.run(GetData(znodes.broker_id_path(0)))
            assert registered.stat.czxid == controller.broker_epoch
            assert registered.stat.ephemeral_owner == tree.session_id
            assert (await client.controller_epoch() or (0,))[0] == round_
            await asyncio.to_thread(admin.create_topic, f"after-{round_}")
            producer = Producer({"bootstrap.servers": f"127.0.0.1:{server.addresses[0].port}", "acks": "all"})
            producer.produce("before", b"x")
            assert await asyncio.to_thread(producer.flush, ADMIN_TIMEOUT_S) == 0
    finally:
        await server.stop()


def test_zookeeper_away_for_a_while_does_not_keep_clients_from_what_is_led(tmp_path: Path, member: MakeMember) -> None:
    zookeeper = ZooKeeper(tmp_path / "own-zookeeper")
    zookeeper.start()
    try:
        broker = member(zookeeper.new_chroot())
        broker.start()
        Admin(broker.bootstrap).create_topic("t")
        zookeeper.stop()
        producer = Producer({"bootstrap.servers": broker.bootstrap, "acks": "all"})
        producer.produce("t", b"x")
        assert producer.flush(ADMIN_TIMEOUT_S) == 0
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
        consumer.subscribe(["t"])
        # The topic of the offsets cannot be made while ZooKeeper is away; the group waits for it.
        assert consumer.poll(1) is None
        zookeeper.start()
        (message,) = consumer.consume(1, ADMIN_TIMEOUT_S)
        assert message.value() == b"x"
        consumer.close()
        admin = Admin(broker.bootstrap)
        admin.create_topic("later")
        zookeeper.stop()
        admin.client.create_topics([NewTopic("never", num_partitions=1, replication_factor=1)])
        stopping = time.monotonic()
        broker.stop()
        assert time.monotonic() - stopping < 10
    finally:
        zookeeper.stop()


def test_ids_are_generated_and_kept(zookeeper: ZooKeeper, member: MakeMember) -> None:
    connect = zookeeper.new_chroot()
    for directory, broker_id in (("a", 1001), ("b", 1002), ("a", 1001)):
        broker = member(connect, directory, **{"broker.id": KAFKAS_OWN})
        broker.start()
        assert f"[KafkaServer id={broker_id}] started" in broker.log_text()
        assert f"broker.id={broker_id}\n" in (broker.log_dir / "meta.properties").read_text()
        # A stop leaves nothing behind that the next start would have to wait for.
        broker.stop()


def refusal(broker: OdradekBroker) -> str:
    """Why a broker does not start: one line, and exit status 1."""
    broker.launch()
    assert broker.wait_for_end() == 1
    lines = [line for line in broker.log_text().splitlines() if line.startswith("odradek: ")]
    assert len(lines) == 1, broker.log_text()
    assert "Traceback" not in broker.log_text()
    return lines[0]


def test_what_belongs_to_another_broker_is_refused(zookeeper: ZooKeeper, member: MakeMember) -> None:
    connect = zookeeper.new_chroot()
    first = member(connect, "a")
    first.start()
    assert "A broker is already registered on the path /brokers/ids/0" in refusal(member(connect, "b"))
    taken = {"broker.id": "1", "advertised.listeners": f"PLAINTEXT://{first.bootstrap}"}
    assert "are already registered by broker 0" in refusal(member(connect, "c", **taken))
    first.stop()
    assert "doesn't match stored broker.id 0" in refusal(member(connect, "a", **{"broker.id": "7"}))
    assert "The broker is trying to join the wrong cluster" in refusal(member(zookeeper.new_chroot(), "a"))


def test_no_zookeeper_at_the_start_is_one_line_in_time(member: MakeMember) -> None:
    connect = f"127.0.0.1:{free_port()}"
    started = time.monotonic()
    line = refusal(member(f"{connect}/kafka", **{"zookeeper.connection.timeout.ms": "1500"}))
    assert line == f"odradek: no ZooKeeper server at {connect} answered within 1500 ms"
    assert 1.5 < time.monotonic() - started < 10


def test_dynamic_configs_are_shared_by_all(zookeeper: ZooKeeper, member: MakeMember) -> None:
    connect = zookeeper.new_chroot()
    brokers = [member(connect, **{"broker.id": str(broker_id)}) for broker_id in range(2)]
    for broker in brokers:
        broker.start()

    def shown(broker: Broker, name: str) -> str | None:
        resource = DescribeConfigsResource(
            resource_type=BROKER, resource_name=name, configuration_keys=["message.max.bytes"]
        )
        with RawClient(broker.host, broker.port) as client:
            (result,) = client.call(DescribeConfigsRequest(resources=[resource]), 4).results
        assert result.error_code == 0, result
        value: str | None = result.configs[0].value
        return value

    set_config(brokers[0], BROKER, "", "message.max.bytes", "2000000")
    set_config(brokers[1], BROKER, "1", "message.max.bytes", "3000000")
    eventually(lambda: shown(brokers[0], "0") == "2000000")
    eventually(lambda: shown(brokers[1], "1") == "3000000")
    for broker in brokers:
        broker.stop()
