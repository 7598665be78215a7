"""Spark streams from a cluster in trouble: what it delivers, and how it fails, is the same with Apache Kafka's brokers.

Brokers are killed, leaders move, partitions are added, records are deleted before they are read, transactions abort,
topics are deleted and made again. `tests/soak/spark/test_trouble_soak.py` kills brokers fifty times.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource

from tests.support.admin import ADMIN_TIMEOUT_S
from tests.support.clusters.cluster import SETTLE_TIMEOUT_S, Cluster, Kind, running_cluster
from tests.support.clusters.mixed_cluster import elect_preferred, move_leaders
from tests.support.loads.streamed_load import StreamedLoad
from tests.support.processes.apache.apache import ZooKeeper
from tests.support.spark.pieces import MARKS, Outgoing, Sent, in_order, kafka_stream, send
from tests.support.spark.stream import Hold, SparkStream, places
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytest_plugins = ["tests.support.spark.session"]
pytestmark = MARKS

SETTINGS = {
    "zookeeper.session.timeout.ms": "3000",
    "log.initial.task.delay.ms": "100",
    "log.retention.check.interval.ms": "100",
}
LONG_AGO_MS = 1_500_000_000_000
MAX_TRANSACTION_MS = 900_000
"""The longest that a broker allows by default, so that the transaction is still open when Spark reads."""
IDEMPOTENT = {"acks": "all", "enable.idempotence": "true"}
A_RECORD_A_BATCH = {"batch.num.messages": "1"}

Streams = Callable[..., SparkStream]
Both = Callable[..., tuple[SparkStream, SparkStream]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory, zookeeper: ZooKeeper, target: Kind) -> Iterator[Cluster]:
    kinds = dict.fromkeys((0, 1, 2), target)
    with running_cluster(Cluster(tmp_path_factory.mktemp("cluster"), zookeeper, kinds, SETTINGS)) as cluster:
        yield cluster
        cluster.check_logs()


@pytest.fixture
def stream(spark: SparkSession, cluster: Cluster) -> Iterator[Streams]:
    """Starts queries, which end with the test."""
    started: list[SparkStream] = []

    def start(hold: Hold | None = None, **options: str) -> SparkStream:
        begin = {"startingOffsets": "earliest", **options}
        started.append(SparkStream(kafka_stream(spark, cluster.bootstrap, **begin), hold))
        return started[-1]

    yield start
    for query in started:
        with query:
            pass


@pytest.fixture
def both(stream: Streams) -> Both:
    """Starts two queries that hold their first batch, with failOnDataLoss true and false."""

    def start(hold: Hold, **options: str) -> tuple[SparkStream, SparkStream]:
        strict, tolerant = (stream(hold, failOnDataLoss=fails, **options) for fails in ("true", "false"))
        strict.await_held()
        tolerant.await_held()
        return strict, tolerant

    return start


def new_topic(cluster: Cluster, name: str, partitions: int = 1, config: dict[str, str] | None = None) -> str:
    cluster.admin().create_topic(name, partitions, config, replicas=3)
    cluster.await_complete(name)
    cluster.await_known(name)
    return name


def produce(cluster: Cluster, topic: str, count: int, partition: int = 0) -> list[Sent]:
    records = (Outgoing(key=b"%d" % number, value=b"value %d" % number, partition=partition) for number in range(count))
    return send(cluster.bootstrap, topic, records, **IDEMPOTENT)


def delete_records(cluster: Cluster, topic: str, before: int, partition: int = 0) -> None:
    wanted = TopicPartition(topic, partition, before)
    admin = cluster.admin()
    for done in admin.client.delete_records([wanted]).values():
        assert done.result(ADMIN_TIMEOUT_S).low_watermark == before


def delete_topic(cluster: Cluster, topic: str) -> None:
    """Delete it, and wait until no broker knows it and its name is free: the mark of the deletion goes last."""
    cluster.admin().delete_topic(topic)

    def still_known() -> bool:
        views = [cluster.metadata(broker_id) for broker_id in cluster.running]
        marked = cluster.tree.children("/admin/delete_topics")
        known = topic in cluster.tree.topics() or topic in marked
        return known or any(topic in (name for name, _ in view.leaders) for view in views)

    eventually(still_known, accept=lambda known: not known, timeout_s=SETTLE_TIMEOUT_S)


def set_config(cluster: Cluster, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    admin = cluster.admin()
    wanted = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
    for done in admin.client.incremental_alter_configs([wanted]).values():
        done.result(ADMIN_TIMEOUT_S)


def watermarks(cluster: Cluster, topic: str, partition: int = 0) -> tuple[int, int]:
    """The log start and the high watermark."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "unused"})
    try:
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=ADMIN_TIMEOUT_S)
        return int(low), int(high)
    finally:
        consumer.close()


def transactional_producer(cluster: Cluster, transactional_id: str) -> Producer:
    settings = {"bootstrap.servers": cluster.bootstrap, "transactional.id": transactional_id}
    producer = Producer({**settings, "transaction.timeout.ms": MAX_TRANSACTION_MS})
    producer.init_transactions(ADMIN_TIMEOUT_S)
    return producer


def begin(producer: Producer, topic: str, value: bytes, partitions: int) -> None:
    """A transaction with two records in each of the first partitions, which are written."""
    producer.begin_transaction()
    for partition in range(partitions):
        for _ in range(2):
            producer.produce(topic, value, partition=partition)
    assert producer.flush(ADMIN_TIMEOUT_S) == 0


def contents(query: SparkStream, end: dict[str, int]) -> list[tuple[int, int, bytes | None]]:
    """Partition, offset and value of each record that was read when the query has come to these offsets."""
    query.until(query.planned, accept=lambda offsets: [*offsets.values()] == [end])
    return [(record.partition, record.offset, record.value) for record in query.records()]


def test_leaders_move_and_the_controller_is_killed(
    spark: SparkSession, cluster: Cluster, unique: Callable[[str], str]
) -> None:
    load = StreamedLoad(spark, cluster, unique("moving"))
    try:
        load.await_delivered()
        move_leaders(cluster, load.topic, shift=1)
        load.await_delivered()
        load.kill_once(cluster.await_controller())
        elect_preferred(cluster, load.topic)
        load.await_delivered()
        load.check()
    finally:
        load.close()


def test_added_partitions_are_read_from_their_beginning(
    cluster: Cluster, stream: Streams, unique: Callable[[str], str]
) -> None:
    """Also by queries that began later in the others; a beginning that is not 0 counts as a loss."""
    topic = new_topic(cluster, unique("growing"))
    produce(cluster, topic, 5)
    options = {"subscribe": topic, "startingOffsets": f'{{"{topic}": {{"0": 3}}}}'}
    strict, late, tolerant = (stream("read", failOnDataLoss=fails, **options) for fails in ("true", "true", "false"))
    for query in (strict, late, tolerant):
        query.await_held()
    cluster.admin().create_partitions(topic, 3)
    cluster.await_complete(topic)
    cluster.await_known(topic)
    produce(cluster, topic, 4, partition=1)
    produce(cluster, topic, 10, partition=2)
    strict.release()
    first = [(0, 3), (0, 4), *((1, n) for n in range(4))]
    assert places(strict.records()) == [*first, *((2, n) for n in range(10))]

    delete_records(cluster, topic, 7, partition=2)
    late.release()
    tolerant.release()
    assert late.data_loss() == f"Added partition {topic}-2 starts from 7 instead of 0."
    assert places(tolerant.records()) == [*first, *((2, n) for n in range(7, 10))]


def test_records_are_deleted_between_the_plan_of_a_batch_and_its_reading(
    cluster: Cluster, both: Both, unique: Callable[[str], str]
) -> None:
    topic = new_topic(cluster, unique("deleted"))
    sent = produce(cluster, topic, 40)
    strict, tolerant = both("planned", subscribe=topic)
    delete_records(cluster, topic, 25)
    strict.release()
    tolerant.release()
    assert strict.data_loss() == f"Could not read records in offset [0, 40) for topic partition {topic}-0"
    assert tolerant.records() == sent[25:]


def test_retention_deletes_what_was_not_read(cluster: Cluster, both: Both, unique: Callable[[str], str]) -> None:
    topic = new_topic(cluster, unique("expired"), config={"segment.bytes": "400"})
    old = (Outgoing(value=b"o" * 300, timestamp_ms=LONG_AGO_MS) for _ in range(30))
    sent = send(cluster.bootstrap, topic, old, **IDEMPOTENT, **A_RECORD_A_BATCH)
    sent += send(cluster.bootstrap, topic, [Outgoing(value=b"n" * 300)] * 10, **IDEMPOTENT, **A_RECORD_A_BATCH)
    strict, tolerant = both("planned", subscribe=topic, maxOffsetsPerTrigger="10")
    set_config(cluster, topic, "retention.ms", "3600000")
    eventually(lambda: watermarks(cluster, topic)[0], accept=lambda start: start == 30, timeout_s=SETTLE_TIMEOUT_S)
    strict.release()
    tolerant.release()
    assert strict.data_loss() == f"Could not read records in offset [0, 10) for topic partition {topic}-0"
    assert tolerant.records() == sent[30:]


def test_only_committed_records_are_read(cluster: Cluster, stream: Streams, unique: Callable[[str], str]) -> None:
    """An open transaction hides what comes after it, also while leaders move; control records are never rows."""
    topic = new_topic(cluster, unique("transactions"), 3)
    one, other = (transactional_producer(cluster, unique("id")) for _ in range(2))
    for value, end in ((b"committed", one.commit_transaction), (b"aborted", one.abort_transaction)):
        begin(one, topic, value, partitions=2)
        end(ADMIN_TIMEOUT_S)
    # The end of a transaction is answered before its markers are written.
    for partition in (0, 1):
        eventually(partial(watermarks, cluster, topic, partition), accept=lambda found: found[1] == 6)
    produce(cluster, topic, 1)
    begin(other, topic, b"open", partitions=1)
    produce(cluster, topic, 1)

    committed = stream(subscribe=topic, **{"kafka.isolation.level": "read_committed"})
    everything = stream(subscribe=topic)
    visible = [(0, 0, b"committed"), (0, 1, b"committed"), (0, 6, b"value 0")]
    visible += [(1, 0, b"committed"), (1, 1, b"committed")]
    assert contents(committed, {"0": 7, "1": 6, "2": 0}) == visible
    hidden = [(p, offset, b"aborted") for p in (0, 1) for offset in (3, 4)]
    was_open = [(0, 7, b"open"), (0, 8, b"open"), (0, 9, b"value 0")]
    assert contents(everything, {"0": 10, "1": 6, "2": 0}) == sorted([*visible, *hidden, *was_open])

    move_leaders(cluster, topic, shift=1)
    other.commit_transaction(ADMIN_TIMEOUT_S)
    visible += was_open
    assert contents(committed, {"0": 11, "1": 6, "2": 0}) == sorted(visible)
    begin(one, topic, b"aborted", partitions=2)
    one.abort_transaction(ADMIN_TIMEOUT_S)
    assert contents(committed, {"0": 14, "1": 9, "2": 0}) == sorted(visible)
    hidden += [(0, 11, b"aborted"), (0, 12, b"aborted"), (1, 6, b"aborted"), (1, 7, b"aborted")]
    assert contents(everything, {"0": 14, "1": 9, "2": 0}) == sorted(visible + hidden)


def test_a_topic_is_deleted_and_made_again(cluster: Cluster, both: Both, unique: Callable[[str], str]) -> None:
    """Its leader epochs begin again, and a topic that is longer than the old one was hides its loss from Spark."""
    shorter, longer = (new_topic(cluster, unique(name)) for name in ("shorter", "longer"))
    old = {topic: produce(cluster, topic, 10) for topic in (shorter, longer)}
    for topic in (shorter, longer):
        move_leaders(cluster, topic, shift=1)
        move_leaders(cluster, topic, shift=2)
    of_shorter, of_longer = (both("read", subscribe=topic) for topic in (shorter, longer))
    for topic, count in ((shorter, 4), (longer, 15)):
        delete_topic(cluster, topic)
        new_topic(cluster, topic)
        old[topic] += produce(cluster, topic, count)[10:]
    for query in (*of_shorter, *of_longer):
        query.release()

    for query in of_longer:
        assert query.records() == old[longer]
    strict, tolerant = of_shorter
    assert strict.data_loss() == f"Partition {shorter}-0 offset was changed from 10 to 4."
    assert tolerant.records() == old[shorter]
    more = produce(cluster, shorter, 3)
    assert tolerant.records() == in_order(old[shorter] + more)
    assert [record.offset for record in more] == [4, 5, 6]


def test_a_topic_is_gone(cluster: Cluster, stream: Streams, both: Both, unique: Callable[[str], str]) -> None:
    """A query of a pattern goes on with the other topics, and reads a new one of that name from its beginning."""
    stem = unique("gone")
    gone, stays = (new_topic(cluster, f"{stem}.{name}") for name in ("gone", "stays"))
    sent = produce(cluster, gone, 3) + produce(cluster, stays, 3)
    strict, tolerant = both("read", subscribePattern=rf"{stem}\..*")
    named = stream("read", subscribe=gone, failOnDataLoss="false")
    named.await_held()
    delete_topic(cluster, gone)
    for query in (strict, tolerant, named):
        query.release()

    assert "UnknownTopicOrPartitionException: This server does not host this topic-partition." in named.failure()
    assert strict.data_loss() == f"Partitions Set({gone}-0) have been deleted."
    tolerant.until(tolerant.planned, accept=lambda offsets: set(offsets) == {stays})
    sent += produce(cluster, stays, 2)
    assert tolerant.records() == in_order(sent)
    new_topic(cluster, gone)
    sent += produce(cluster, gone, 2)
    assert tolerant.records() == in_order(sent)
