"""Fetches of followers and at followers, one by one: which are allowed, their effects, preferred replicas."""

from __future__ import annotations

from base64 import urlsafe_b64decode
from collections.abc import Callable

import confluent_kafka
import pytest
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

from odradek.protocol.api import ApiKey
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.fetch import FetchRequest, FetchResponse, PartitionData
from odradek.protocol.records.batch import batches
from tests.support.clusters.cluster import Cluster, Kind
from tests.support.loads.clients import Confluent, Message
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import build

pytestmark = pytest.mark.oracle

LEADER, FOLLOWER = 0, 1
RECORDS = 3
NONE = ErrorCode.NONE
EPOCH = 2**40
"""Of the registration that the test invents; larger than any before it."""


@pytest.fixture(scope="module")
def cluster(new_cluster: Callable[..., Cluster], target: Kind) -> Cluster:
    """Two brokers in racks of their own, and two topics that the first leads."""
    cluster = new_cluster(
        {LEADER: target, FOLLOWER: target},
        {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"},
        own_settings=lambda broker_id: {"broker.rack": f"rack{broker_id}"},
    )
    cluster.start()
    for topic in ("read", "followed"):
        cluster.admin().create_assigned_topic(topic, [(LEADER, FOLLOWER)])
        cluster.await_known(topic)
        for _ in range(RECORDS):
            Confluent().produce(cluster.bootstrap, topic, [Message(key=None, value=b"v")])
    cluster.await_complete("read", "followed")
    return cluster


def fetch(
    cluster: Cluster,
    broker_id: int,
    topic: str,
    offset: int,
    *,
    version: int = 17,
    replica: tuple[int, int] = (-1, -1),
    **fields: object,
) -> PartitionData:
    """One partition's answer. `replica`: id and broker epoch. Fields of the partition and of the request."""
    in_partition = {name: fields.pop(name) for name in ("current_leader_epoch", "last_fetched_epoch") if name in fields}
    node = cluster.tree.get(f"/brokers/topics/{topic}")
    name = {"topic_id": urlsafe_b64decode(node["topic_id"] + "==")} if version >= 13 else {"topic": topic}
    part = {"partition": 0, "fetch_offset": offset, "log_start_offset": 0, "partition_max_bytes": 1 << 20}
    request = build(
        ApiKey.FETCH,
        topics=[{**name, "partitions": [{**part, **in_partition}]}],
        **{"max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1 << 20, "session_epoch": -1, **fields},
    )
    assert isinstance(request, FetchRequest)
    if version >= 15:
        request.replica_state.replica_id, request.replica_state.replica_epoch = replica
    else:
        request.replica_id = replica[0]
    with RawClient("127.0.0.1", cluster.ports[broker_id]) as client:
        answer = client.call(request, version)
    assert isinstance(answer, FetchResponse)
    assert answer.error_code == NONE
    return answer.responses[0].partitions[0]


def offsets(data: PartitionData) -> list[int]:
    return [found.base_offset for found in batches(memoryview(bytes(data.records or b"")))]


# Consumers


@pytest.mark.parametrize("version", [11, 12, 17])
def test_consumer_is_sent_to_the_replica_of_its_rack(cluster: Cluster, version: int) -> None:
    """Its fetches have told the leader that it has everything; a moment after the last append it has said so."""

    def ask() -> PartitionData:
        return fetch(cluster, LEADER, "read", 0, version=version, rack_id="rack1")

    sent = eventually(ask, accept=lambda data: data.preferred_read_replica == FOLLOWER)
    assert (sent.error_code, offsets(sent), sent.high_watermark, sent.log_start_offset) == (NONE, [], RECORDS, 0)


@pytest.mark.parametrize(
    ("version", "fields"),
    [(17, {"rack_id": "rack0"}), (17, {"rack_id": "rack9"}), (17, {}), (10, {})],
    ids=["the leader's rack", "nobody's rack", "no rack", "before v11"],
)
def test_other_consumers_read_from_the_leader(cluster: Cluster, version: int, fields: dict[str, object]) -> None:
    data = fetch(cluster, LEADER, "read", 0, version=version, **fields)
    assert (data.error_code, data.preferred_read_replica, offsets(data)) == (NONE, -1, [0, 1, 2])


@pytest.mark.parametrize(
    ("version", "offset", "fields", "error", "expected"),
    [
        (17, 0, {}, NONE, [0, 1, 2]),
        (11, 1, {"rack_id": "rack1"}, NONE, [1, 2]),
        (17, 0, {"current_leader_epoch": 0}, NONE, [0, 1, 2]),
        (17, 0, {"current_leader_epoch": 1}, ErrorCode.UNKNOWN_LEADER_EPOCH, []),
        (17, RECORDS, {}, NONE, []),
        (17, RECORDS + 1, {}, ErrorCode.OFFSET_OUT_OF_RANGE, []),
        (10, 0, {}, ErrorCode.NOT_LEADER_OR_FOLLOWER, []),
        (17, 0, {"replica": (LEADER, -1)}, ErrorCode.NOT_LEADER_OR_FOLLOWER, []),
    ],
)
def test_follower_serves_consumers(
    cluster: Cluster, version: int, offset: int, fields: dict[str, object], error: ErrorCode, expected: list[int]
) -> None:
    def ask() -> PartitionData:
        return fetch(cluster, FOLLOWER, "read", offset, version=version, **fields)  # type: ignore[arg-type]

    # A follower learns of the high watermark with the fetch after.
    data = eventually(ask, accept=lambda data: data.error_code == error and offsets(data) == expected)
    assert data.high_watermark == (RECORDS if error == NONE else -1)


def test_rest_of_what_consumers_ask_is_asked_of_the_leader(cluster: Cluster) -> None:
    timestamps = build(
        ApiKey.LIST_OFFSETS,
        replica_id=-1,
        topics=[{"name": "read", "partitions": [{"partition_index": 0, "timestamp": -1}]}],
    )
    epochs = build(
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        replica_id=-1,
        topics=[{"topic": "read", "partitions": [{"partition": 0, "leader_epoch": 0}]}],
    )
    for broker_id, error in ((LEADER, NONE), (FOLLOWER, ErrorCode.NOT_LEADER_OR_FOLLOWER)):
        with RawClient("127.0.0.1", cluster.ports[broker_id]) as client:
            listed = client.call(timestamps, 7).topics[0].partitions[0]  # type: ignore[attr-defined]
            ended = client.call(epochs, 4).topics[0].partitions[0]  # type: ignore[attr-defined]
        assert (listed.error_code, ended.error_code) == (error, error)


def test_a_client_with_a_rack_reads_everything(cluster: Cluster) -> None:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": cluster.bootstrap,
            "group.id": "not-used",
            "enable.auto.commit": False,
            "client.rack": "rack1",
        }
    )
    try:
        consumer.assign([confluent_kafka.TopicPartition("read", 0, 0)])
        found = consumer.consume(RECORDS, 20)
    finally:
        consumer.close()
    assert [message.offset() for message in found] == [0, 1, 2]


# Followers. From here on the real one is stopped, and the test speaks for it.


@pytest.fixture(scope="module")
def orphaned(cluster: Cluster) -> Cluster:
    cluster.stop(FOLLOWER)
    eventually(lambda: cluster.tree.partition("followed").isr, accept=lambda isr: isr == (LEADER,))
    eventually(lambda: cluster.metadata(LEADER).brokers, accept=lambda brokers: brokers == {LEADER})
    Confluent().produce(cluster.address(LEADER), "followed", [Message(key=None, value=b"v")])
    return cluster


@pytest.mark.parametrize(
    ("version", "offset", "fields", "error"),
    [
        (17, 0, {"replica": (9, EPOCH)}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (17, 0, {"replica": (9, EPOCH), "current_leader_epoch": 1}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (8, 0, {"replica": (9, -1)}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (17, 0, {"replica": (LEADER, EPOCH)}, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (17, 0, {"replica": (FOLLOWER, EPOCH), "current_leader_epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        (17, 0, {"replica": (FOLLOWER, EPOCH), "current_leader_epoch": 2}, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (17, 9, {"replica": (FOLLOWER, EPOCH), "current_leader_epoch": 1}, ErrorCode.OFFSET_OUT_OF_RANGE),
        (17, 4, {"replica": (FOLLOWER, EPOCH), "last_fetched_epoch": 7}, ErrorCode.OFFSET_OUT_OF_RANGE),
        (17, 0, {"replica": (FOLLOWER, EPOCH), "current_leader_epoch": 1}, NONE),
        (14, 0, {"replica": (FOLLOWER, -1)}, NONE),
    ],
)
def test_who_may_follow(
    orphaned: Cluster, version: int, offset: int, fields: dict[str, object], error: ErrorCode
) -> None:
    assert orphaned.tree.partition("followed").leader_epoch == 1
    data = fetch(orphaned, LEADER, "followed", offset, version=version, **fields)  # type: ignore[arg-type]
    assert (data.error_code, offsets(data)) == (error, [0, 1, 2, 3] if error == NONE else [])
    assert orphaned.tree.partition("followed").isr == (LEADER,)


def test_follower_of_another_history_is_told_where_it_diverges(orphaned: Cluster) -> None:
    """Epoch 0 ended at offset 3: who has a record of it at offset 3 has one that nobody else has."""
    data = fetch(orphaned, LEADER, "followed", 4, replica=(FOLLOWER, EPOCH), last_fetched_epoch=0)
    assert (data.error_code, offsets(data)) == (NONE, [])
    assert (data.diverging_epoch.epoch, data.diverging_epoch.end_offset) == (0, RECORDS)


def test_dead_follower_that_caught_up_does_not_join(orphaned: Cluster) -> None:
    data = fetch(
        orphaned, LEADER, "followed", 4, replica=(FOLLOWER, EPOCH), current_leader_epoch=1, last_fetched_epoch=1
    )
    assert (data.error_code, data.high_watermark) == (NONE, 4)
    Confluent().produce(orphaned.address(LEADER), "followed", [Message(key=None, value=b"v")])
    assert fetch(orphaned, LEADER, "followed", 0).high_watermark == 5, "nobody waits for it"
    assert orphaned.tree.partition("followed").isr == (LEADER,)


def test_throttled_follower_gets_nothing_until_the_rate_has_fallen(orphaned: Cluster) -> None:
    client = confluent_kafka.admin.AdminClient({"bootstrap.servers": orphaned.address(LEADER)})

    def configure(kind: ResourceType, name: str, key: str, value: str) -> None:
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(kind, name, incremental_configs=[entry])
        client.incremental_alter_configs([resource])[resource].result(20)

    def ask(replica: int) -> list[int]:
        return offsets(fetch(orphaned, LEADER, "followed", 0, replica=(replica, -1)))

    everything = ask(FOLLOWER)
    assert everything[:4] == [0, 1, 2, 3]
    configure(ResourceType.BROKER, str(LEADER), "leader.replication.throttled.rate", "10")
    configure(ResourceType.TOPIC, "followed", "leader.replication.throttled.replicas", f"0:{LEADER},0:{FOLLOWER}")
    eventually(lambda: ask(FOLLOWER), accept=lambda found: found == [])
    assert ask(-1) == everything, "consumers are not throttled"
    configure(ResourceType.BROKER, str(LEADER), "leader.replication.throttled.rate", "100000")
    eventually(lambda: ask(FOLLOWER), accept=lambda found: found == everything)
