"""Odradek and Apache Kafka brokers in one cluster, leading and following each other; the controller on either side.

Each test runs with two Odradek brokers and one Apache and the other way round; those where it matters, with each side
as the controller.
"""

from __future__ import annotations

from collections.abc import Callable

import confluent_kafka
import pytest
from confluent_kafka.admin import RESOURCE_TOPIC, AlterConfigOpType, ConfigEntry, ConfigResource

from tests.support.admin import Admin
from tests.support.clusters.cluster import SETTLE_TIMEOUT_S, Cluster, Kind
from tests.support.clusters.mixed_cluster import (
    BROKERS,
    Group,
    await_gone,
    check_loads,
    dump_problems,
    elect_preferred,
    loads,
    move_leaders,
    reassign,
    rotated,
    transact,
)
from tests.support.disks.replica_files import await_identical, partition_dirs
from tests.support.loads.clients import Confluent, Message
from tests.support.loads.transactional_clients import ConfluentTransactions
from tests.support.waiting import eventually

pytestmark = pytest.mark.oracle

MIXES: dict[str, tuple[Kind, Kind, Kind]] = {
    "two-odradek": ("odradek", "apache", "odradek"),
    "two-apache": ("apache", "odradek", "apache"),
}
ORACLE: tuple[Kind, Kind, Kind] = ("apache", "apache", "apache")
ONE_OF_EACH = (0, 1)
MOVES = 20
SESSION_TIMEOUT_MS = 3000
SIDES: tuple[Kind, Kind] = ("odradek", "apache")


@pytest.fixture(scope="module", params=MIXES)
def started(request: pytest.FixtureRequest, new_cluster: Callable[..., Cluster], target: Kind) -> Cluster:
    kinds = dict(zip(BROKERS, MIXES[request.param] if target == "odradek" else ORACLE, strict=True))
    cluster = new_cluster(kinds, {"zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS)})
    cluster.start()
    return cluster


@pytest.fixture
def cluster(started: Cluster) -> Cluster:
    """All brokers running."""
    if missing := set(BROKERS) - started.running:
        started.start(*missing)
    return started


@pytest.fixture(params=SIDES)
def controlled(request: pytest.FixtureRequest, cluster: Cluster) -> Cluster:
    """With the controller on one side."""
    side = [broker_id for broker_id in BROKERS if cluster.brokers[broker_id].target == request.param]
    cluster.make_controller(side[0] if side else SIDES.index(request.param))
    return cluster


@pytest.fixture
def admin(cluster: Cluster) -> Admin:
    return cluster.admin()


def test_leaders_move(controlled: Cluster, unique: Callable[[str], str]) -> None:
    """Half of the twenty moves under each controller, under load: each partition is led by each broker in turn."""
    started = loads(controlled, unique("moved"))
    try:
        for shift in range(1, MOVES // len(SIDES) + 1):
            move_leaders(controlled, started["idempotent"].topic, shift)
            move_leaders(controlled, started["plain"].topic, shift)
            for load in started.values():
                load.await_progress()
    finally:
        for load in started.values():
            load.finish()
    topics = [load.topic for load in started.values()]
    await_identical(controlled, *topics)
    check_loads(controlled, started)
    assert dump_problems(controlled, topics) == []


def test_groups_and_transactions(controlled: Cluster, admin: Admin, unique: Callable[[str], str]) -> None:
    """Coordinators on every broker, and moved away under their groups and transactions."""
    topic = admin.create_assigned_topic(unique("worked"), [rotated(0)])
    groups = [Group(controlled, unique("group"), topic) for _ in range(3)]
    ids = [unique("id") for _ in range(3)]
    seen = transact(controlled, topic, ids)
    assert [group.read(len(seen)) for group in groups] == [[value.encode() for value in seen]] * 3
    committed = [group.committed() for group in groups]
    for shift in (1, 2):
        for internal in ("__consumer_offsets", "__transaction_state"):
            move_leaders(controlled, internal, shift)
        assert [group.committed() for group in groups] == committed
        more = transact(controlled, topic, ids)
        assert [group.read(len(more)) for group in groups] == [[value.encode() for value in more]] * 3
        committed = [group.committed() for group in groups]
        seen += more
    for group in groups:
        group.close()
    client = ConfluentTransactions()
    assert [value for _, value in client.read(controlled.bootstrap, topic, "read_committed")] == seen
    everything = [value for _, value in client.read(controlled.bootstrap, topic, "read_uncommitted")]
    assert len(everything) == 2 * len(seen)
    await_identical(controlled, topic, "__consumer_offsets", "__transaction_state")
    assert dump_problems(controlled, [topic, "__consumer_offsets", "__transaction_state"]) == []


def test_replicas_move_onto_and_off_each_broker(
    controlled: Cluster, admin: Admin, unique: Callable[[str], str]
) -> None:
    """One replica that goes round the cluster, with its records; then the topic goes, and its directories with it."""
    topic = admin.create_assigned_topic(unique("travelling"), [[0]])
    written = []
    for stop, ids in enumerate(([1], [2, 0], [0], [0, 1, 2], [2], [0])):
        value = b"before stop %d" % stop
        Confluent().produce(controlled.bootstrap, topic, [Message(key=None, value=value)] * 50)
        written += [value] * 50
        reassign(controlled, {(topic, 0): ids})
        await_gone(controlled, topic, [n for n in BROKERS if n not in ids])
        await_identical(controlled, topic)
        received = Confluent().consume(controlled.bootstrap, topic, len(written))
        assert [each.value for each in received] == written
    admin.create_partitions(topic, 4)
    controlled.await_complete(topic)
    admin.delete_topic(topic)
    await_gone(controlled, topic)
    eventually(lambda: topic not in controlled.tree.topics(), timeout_s=SETTLE_TIMEOUT_S)
    # The mark goes last; until then the topic cannot be created.
    eventually(lambda: topic not in controlled.tree.children("/admin/delete_topics"), timeout_s=SETTLE_TIMEOUT_S)
    for broker_id in BROKERS:
        eventually(lambda broker_id=broker_id: all(t != topic for t, _ in controlled.metadata(broker_id).leaders))  # type: ignore[misc]
    again = admin.create_topic(topic, 3, replicas=3)
    controlled.await_complete(again)
    everywhere = [controlled.log_dir(broker_id) for broker_id in BROKERS]
    eventually(lambda: all(f"{topic}-0" in partition_dirs(log_dir) for log_dir in everywhere))


def test_configurations_are_shared(controlled: Cluster, admin: Admin, unique: Callable[[str], str]) -> None:
    """A limit set through either side holds on every leader."""
    topic = admin.create_assigned_topic(unique("limited"), [rotated(p) for p in range(3)])
    for broker_id in BROKERS:
        limit = 300 + 100 * broker_id
        set_topic_config(Admin(controlled.address(broker_id)), topic, "max.message.bytes", str(limit))
        for size, is_taken in ((limit, False), (limit - 100, True)):
            for partition in range(3):
                case = (controlled, topic, partition, size)
                eventually(lambda case=case: produces(*case), accept=lambda taken, wanted=is_taken: taken is wanted)  # type: ignore[misc]


def test_brokers_go_in_order_and_without(cluster: Cluster, admin: Admin, unique: Callable[[str], str]) -> None:
    """A controlled shutdown and a kill -9 of each kind of broker, which is the controller both times, under load.
    Groups and transactions outlive their coordinators.
    """
    worked = admin.create_assigned_topic(unique("worked"), [BROKERS])
    ids = [unique("id") for _ in range(3)]
    groups = [Group(cluster, unique("group"), worked) for _ in range(3)]
    started = loads(cluster, unique("survived"))
    topics = [load.topic for load in started.values()]
    everything = [*topics, worked, "__consumer_offsets", "__transaction_state"]

    def is_led_without(broker_id: int) -> bool:
        states = [state for topic in everything for state in cluster.tree.partitions(topic).values()]
        return all(state.leader not in (broker_id, -1) for state in states)

    def make_controller(broker_id: int) -> None:
        """The others sleep during the election, perhaps for longer than their sessions last."""
        cluster.make_controller(broker_id)
        cluster.await_complete(*everything)

    def work() -> None:
        values = [value.encode() for value in transact(cluster, worked, ids)]
        assert [group.read(len(values)) for group in groups] == [values] * len(groups)

    try:
        work()
        for broker_id in ONE_OF_EACH:
            make_controller(broker_id)
            cluster.stop(broker_id)
            assert is_led_without(broker_id)
            work()
            cluster.start(broker_id)
            cluster.await_complete(*everything)
            for topic in (topics[0], "__consumer_offsets", "__transaction_state"):
                elect_preferred(cluster, topic)
            make_controller(broker_id)
            cluster.kill(broker_id)
            eventually(lambda gone=broker_id: is_led_without(gone), timeout_s=SETTLE_TIMEOUT_S)  # type: ignore[misc]
            work()
            cluster.start(broker_id)
            cluster.await_complete(*topics)
    finally:
        for load in started.values():
            load.finish()
    for group in groups:
        group.close()
    await_identical(cluster, *everything)
    check_loads(cluster, started)
    assert dump_problems(cluster, everything) == []


def set_topic_config(admin: Admin, topic: str, name: str, value: str) -> None:
    resource = ConfigResource(
        RESOURCE_TOPIC,
        topic,
        incremental_configs=[ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)],
    )
    admin.client.incremental_alter_configs([resource])[resource].result(30)


def produces(cluster: Cluster, topic: str, partition: int, size: int) -> bool:
    """Whether the leader takes a record of that size; the only reason not to is that size."""
    producer = confluent_kafka.Producer({"bootstrap.servers": cluster.bootstrap, "log_level": 0})
    errors: list[confluent_kafka.KafkaError | None] = []
    producer.produce(topic, b"x" * size, partition=partition, on_delivery=lambda error, message: errors.append(error))
    assert producer.flush(20) == 0
    assert errors[0] is None or errors[0].code() == confluent_kafka.KafkaError.MSG_SIZE_TOO_LARGE, errors
    return errors[0] is None
