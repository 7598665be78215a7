"""Three replicas on three brokers: what a GB and a record cost all of them together."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Final

from tests.benchmarks.clients import librdkafka
from tests.benchmarks.clients.librdkafka import RECORD_BYTES
from tests.benchmarks.comparison.costs import bulk_figures, cost_of, latency_figures
from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import Setup, Side, Workload
from tests.benchmarks.contenders import SETTINGS, Contenders, create_topic, delete_topic
from tests.benchmarks.workloads.records.latency import exchange, produce_frame
from tests.support.clusters.cluster import Cluster, Kind, running_cluster
from tests.support.processes.apache.apache import IN_EARNEST
from tests.support.wire.raw_client import RawClient

TOPIC: Final = "replicated"
REPLICAS: Final = 3
PARTITIONS: Final = 6
RECORDS: Final = 150_000
REQUESTS: Final = 3_000


@contextmanager
def _three_brokers(contenders: Contenders, label: str) -> Iterator[Side]:
    """The controller is the first of them: it creates topics."""
    kind: Kind = "apache" if label.startswith("Apache") else "odradek"
    directory = contenders.new_directory(f"cluster-{kind}")
    cluster = Cluster(directory, contenders.zookeeper, dict.fromkeys(range(3), kind), SETTINGS, jvm=IN_EARNEST)
    with running_cluster(cluster):
        controller = cluster.await_controller()
        ids = sorted(cluster.brokers, key=lambda broker_id: broker_id != controller)
        side = Side(label, contenders, [cluster.brokers[broker_id] for broker_id in ids])
        side.memo["cluster"] = cluster
        yield side


def new_topic(side: Side, partitions: int) -> str:
    """One whose replicas are all in sync."""
    topic = side.new_topic(TOPIC)
    create_topic(side.broker, topic, partitions, replicas=REPLICAS)
    side.memo["cluster"].await_complete(topic)
    return topic


def produce(batch_bytes: int, side: Side) -> Figures:
    topic, records = new_topic(side, PARTITIONS), side.amount(RECORDS, at_least=100)
    client = {**side.librdkafka, "batch.size": batch_bytes}
    cost = cost_of(side, partial(librdkafka.produce, client, topic, PARTITIONS, records))
    delete_topic(side.broker, topic)
    return bulk_figures(cost, records * RECORD_BYTES)


def prepare_latency(sides: Sequence[Side]) -> None:
    for side in sides:
        topic = new_topic(side, 1)
        leader = side.memo["cluster"].tree.partitions(topic)[0].leader
        port = side.memo["cluster"].ports[leader]
        with RawClient("127.0.0.1", port):  # the leader can be reached
            side.memo[TOPIC] = (topic, port)


def latency(side: Side) -> Figures:
    topic, port = side.memo[TOPIC]
    count = side.amount(REQUESTS, at_least=100)
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        cost = cost_of(side, partial(exchange, client, produce_frame(topic), count))
    used = cost.usage.total_s / count * 1e6
    return {**latency_figures(cost.returned), ("all three brokers", "CPU µs/request"): used}


THREE_BROKERS: Final = Setup("three brokers", _three_brokers)

WORKLOADS: Final = (
    *(
        Workload(
            name=f"replicas/produce-{batch_bytes >> 10}KB",
            description=f"Produce {RECORD_BYTES:,} B records by librdkafka, batches of {batch_bytes >> 10} KB, "
            f"acks=all, {PARTITIONS} partitions of 3 replicas: the cost of all three brokers",
            setup=THREE_BROKERS,
            drive=partial(produce, batch_bytes),
        )
        for batch_bytes in (16_384, 131_072)
    ),
    Workload(
        name="replicas/latency",
        description="One record per request, acks=all, one partition of 3 replicas, one request after the other",
        setup=THREE_BROKERS,
        prepare=prepare_latency,
        drive=latency,
    ),
)
