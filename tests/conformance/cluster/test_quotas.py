"""Quotas in a cluster of one Odradek and one Apache Kafka broker: set on either, they hold on both, and as much."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from time import monotonic

import pytest

from odradek.protocol.api import ApiKey
from odradek.protocol.messages.fetch import FetchResponse
from odradek.protocol.messages.produce import ProduceResponse
from tests.support.clusters.cluster import Cluster, Kind
from tests.support.processes.apache.tools import Tools
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import batch, build

pytestmark = pytest.mark.oracle

KINDS: tuple[Kind, Kind] = ("odradek", "apache")
WINDOWS = 4
RATE = 60_000
LARGE_BATCH_BYTES = 250_000
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


def test_producers_are_throttled_as_much_by_either_kind(cluster: Cluster, tools: Tools) -> None:
    """The first request that a quota counts is beyond it: how long a client is throttled then depends on no clock."""
    topics = [cluster.admin().create_assigned_topic(f"produced-{broker_id}", [[broker_id]]) for broker_id in (0, 1)]
    for topic in topics:
        cluster.await_known(topic)
    set_quota(cluster, tools, 0, "producer_byte_rate")
    times_ms = []
    for broker_id, topic in enumerate(topics):
        with RawClient(cluster.host(broker_id), cluster.ports[broker_id], CLIENT_ID) as client:
            produce = partial(produce_batch, client, topic, LARGE_BATCH_BYTES)
            times_ms.append(eventually(produce))  # what comes before the quota is not counted
    print(f"throttle time of the produce request: {times_ms[0]} ms with Odradek, {times_ms[1]} ms with Apache Kafka")
    assert times_ms[0] == times_ms[1]
    assert times_ms[0] > 100


def test_a_fetch_beyond_the_quota_is_empty_and_mutes_as_long_on_either_kind(cluster: Cluster, tools: Tools) -> None:
    """The second of two fetches, of 250 KB in all, is beyond what 60 KB a second allow in three windows.

    What passes between the two is taken off the throttle time. The test knows this time within bounds.
    """
    set_quota(cluster, tools, 1, "consumer_byte_rate")
    at_least_ms, at_most_ms = [], []
    for broker_id in (0, 1):
        topic = cluster.admin().create_assigned_topic(f"consumed-{broker_id}", [[broker_id]])
        cluster.await_known(topic)
        with RawClient(cluster.host(broker_id), cluster.ports[broker_id]) as producer:
            for _ in range(BATCHES):
                produce_batch(producer, topic, BATCH_BYTES)
            fetch(producer, topic)  # Apache Kafka's first fetch is slow
        with RawClient(cluster.host(broker_id), cluster.ports[broker_id], CLIENT_ID) as client:
            first_sent_s = monotonic()
            assert fetch(client, topic).responses, "the first fetch is within the quota"
            second_sent_s = monotonic()
            throttled = fetch(client, topic)
            answered_s = monotonic()
            assert throttled.responses == []
            fetch(client, topic)
            muted_ms = (monotonic() - second_sent_s) * 1_000
        print(f"broker {broker_id}: a throttle time of {throttled.throttle_time_ms} ms")
        assert muted_ms >= 0.9 * throttled.throttle_time_ms, "it began before the answer was here"
        at_least_ms.append(throttled.throttle_time_ms)
        at_most_ms.append(throttled.throttle_time_ms + (answered_s - first_sent_s) * 1_000)
    assert max(at_least_ms) <= min(at_most_ms) + 1


def produce_batch(client: RawClient, topic: str, size: int) -> int:
    """The throttle time in milliseconds."""
    data = [{"name": topic, "partition_data": [{"index": 0, "records": batch(bytes(size))}]}]
    answer = client.call(build(ApiKey.PRODUCE, acks=1, timeout_ms=10_000, topic_data=data), 9)
    assert isinstance(answer, ProduceResponse)
    return answer.throttle_time_ms


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
