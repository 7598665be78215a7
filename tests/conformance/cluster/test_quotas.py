"""Quotas in a cluster of one Odradek and one Apache Kafka broker: set on either, they hold on both, and as much."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.messages.fetch import FetchResponse
from tests.support.clusters.cluster import Cluster, Kind
from tests.support.processes.apache.tools import Tools
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import batch, build

pytestmark = pytest.mark.oracle

KINDS: tuple[Kind, Kind] = ("odradek", "apache")
WINDOWS = 4
RATE = 60_000
RECORDS, RECORD_BYTES = 600, 1_000
BATCHES, BATCH_BYTES = 15, 10_000
CLIENT_ID = "limited"


@pytest.fixture(scope="module")
def cluster(new_cluster: Callable[..., Cluster], target: Kind) -> Cluster:
    kinds = dict(enumerate(KINDS if target == "odradek" else ("apache", "apache")))
    one_replica = {"offsets.topic.replication.factor": "1", "default.replication.factor": "1"}
    cluster = new_cluster(kinds, {"quota.window.num": str(WINDOWS), **one_replica})
    cluster.start()
    return cluster


def set_quota(cluster: Cluster, tools: Tools, broker_id: int, key: str) -> None:
    """Through one broker; both of them are notified."""
    bootstrap = f"{cluster.host(broker_id)}:{cluster.ports[broker_id]}"
    entity = ("--entity-type", "clients", "--entity-name", CLIENT_ID)
    tools.run("configs", "--bootstrap-server", bootstrap, "--alter", *entity, "--add-config", f"{key}={RATE}")


def metric(output: str, name: str) -> float:
    found = re.search(rf":{name}:\{{client-id={CLIENT_ID}\}}\s*: ([0-9.]+)", output)
    assert found is not None, output
    return float(found[1])


def test_producers_are_throttled_as_much_by_either_kind(cluster: Cluster, tools: Tools) -> None:
    topics = [cluster.admin().create_assigned_topic(f"produced-{broker_id}", [[broker_id]]) for broker_id in (0, 1)]
    for topic in topics:
        cluster.await_known(topic)
    set_quota(cluster, tools, 0, "producer_byte_rate")

    def produce(topic: str) -> str:
        load = ("--num-records", str(RECORDS), "--record-size", str(RECORD_BYTES), "--throughput", "-1")
        settings = (f"bootstrap.servers={cluster.bootstrap}", f"client.id={CLIENT_ID}", "batch.size=16384")
        arguments = ("--topic", topic, *load, "--print-metrics", "--producer-props", *settings)
        return tools.run("producer-perf-test", *arguments).stdout

    with ThreadPoolExecutor(2) as pool:
        ours, theirs = pool.map(produce, topics)
    for name in ("produce-throttle-time-avg", "produce-throttle-time-max"):
        print(f"{name}: {metric(ours, name)} ms with Odradek, {metric(theirs, name)} ms with Apache Kafka")
        assert metric(ours, name) == pytest.approx(metric(theirs, name), rel=0.1)
        assert metric(ours, name) > 100


def test_a_fetch_beyond_the_quota_is_empty_and_mutes_as_long_on_either_kind(cluster: Cluster, tools: Tools) -> None:
    """The second of two fetches, of 250 KB in all, is beyond what 60 KB a second allow in three windows."""
    set_quota(cluster, tools, 1, "consumer_byte_rate")
    times_ms = {}
    for broker_id in (0, 1):
        topic = cluster.admin().create_assigned_topic(f"consumed-{broker_id}", [[broker_id]])
        cluster.await_known(topic)
        with RawClient(cluster.host(broker_id), cluster.ports[broker_id]) as producer:
            for _ in range(BATCHES):
                produce_batch(producer, topic)
            fetch(producer, topic)  # Apache Kafka's first fetch is slow
        with RawClient(cluster.host(broker_id), cluster.ports[broker_id], CLIENT_ID) as client:
            assert fetch(client, topic).responses, "the first fetch is within the quota"
            throttled = fetch(client, topic)
            began_s = monotonic()
            assert throttled.responses == []
            fetch(client, topic)
            muted_ms = (monotonic() - began_s) * 1_000
            assert muted_ms >= 0.9 * throttled.throttle_time_ms, "it began before the answer was here"
            times_ms[broker_id] = throttled.throttle_time_ms
    print(f"throttle time of the fetch: {times_ms[0]} ms with Odradek, {times_ms[1]} ms with Apache Kafka")
    assert times_ms[0] == pytest.approx(times_ms[1], rel=0.1)


def produce_batch(client: RawClient, topic: str) -> None:
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch(bytes(BATCH_BYTES))}]}]
    client.call(build(ApiKey.PRODUCE, acks=1, timeout_ms=10_000, topic_data=data), 9)


def fetch(client: RawClient, topic: str) -> FetchResponse:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 125_000}
    request = build(
        ApiKey.FETCH,
        topics=[{"topic": topic, "partitions": [partition]}],
        session_epoch=-1,
        max_wait_ms=0,
        min_bytes=1,
        max_bytes=10_000_000,
    )
    answer = client.call(request, 12)
    assert isinstance(answer, FetchResponse)
    return answer
