"""From produce() to the consumer's poll(), at 10, 50 and 80 percent of the highest rate.

The highest rate is what a consumer gets while a producer sends as fast as it can. Both sides get the same rates: of the
side whose highest rate is lower. Producer and consumer are librdkafka, each in a process of its own. A record carries
the time at which it is sent, by the monotonic clock, which all processes share.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import confluent_kafka

from tests.benchmarks.clients.librdkafka import FLUSH_TIMEOUT_S, READ_TIMEOUT_S
from tests.benchmarks.clients.processes import client_processes
from tests.benchmarks.comparison.costs import cost_of, latency_figures
from tests.benchmarks.comparison.setups import ONE_NODE
from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import Side, Workload
from tests.benchmarks.contenders import create_topic, delete_topic

PARTITIONS: Final = 6
VALUE_BYTES: Final = 1_000
PERCENTS: Final = (10, 50, 80)
SECONDS: Final = 3
HIGHEST_RECORDS: Final = 200_000
HIGHEST: Final = "the highest rate"
STEP_S: Final = 0.001
"""The producer sends what is due, and sleeps so long."""
MONOTONIC: Final = struct.Struct(">q")


def send(client: Mapping[str, Any], topic: str, records: int, rate: float) -> None:
    """`rate` records a second, all at once if it is 0."""
    producer = confluent_kafka.Producer(
        {"acks": "all", "linger.ms": 0, "queue.buffering.max.messages": 100_000, **client}
    )
    padding, started, sent = bytes(VALUE_BYTES - MONOTONIC.size), time.monotonic(), 0
    while sent < records:
        due = min(records, int((time.monotonic() - started) * rate) + 1) if rate else records
        while sent < due:
            try:
                producer.produce(topic, MONOTONIC.pack(time.monotonic_ns()) + padding, partition=sent % PARTITIONS)
                sent += 1
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
        time.sleep(STEP_S)
    assert producer.flush(FLUSH_TIMEOUT_S) == 0, "not everything was acknowledged"


def receive(client: Mapping[str, Any], topic: str, records: int) -> tuple[list[float], float]:
    """The latency of each record in seconds, and seconds from the first to the last."""
    consumer = confluent_kafka.Consumer({"group.id": "unused", "enable.auto.commit": False, **client})
    consumer.assign([confluent_kafka.TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    latencies: list[float] = []
    first = 0.0
    while len(latencies) < records:
        message = consumer.poll(READ_TIMEOUT_S)
        assert message is not None, f"{records - len(latencies)} records are missing"
        assert message.error() is None, message.error()
        now = time.monotonic_ns()
        first = first or now
        latencies.append((now - MONOTONIC.unpack_from(message.value())[0]) / 1e9)
    elapsed_s = (now - first) / 1e9
    consumer.close()
    return latencies, elapsed_s


def through(side: Side, records: int, rate: float) -> tuple[list[float], float, float]:
    """Latencies, seconds, and processor seconds of the broker."""
    topic = side.new_topic("end-to-end")
    create_topic(side.broker, topic, PARTITIONS)
    with client_processes(2) as pool:

        def work() -> tuple[list[float], float]:
            receiving = pool.submit(receive, side.librdkafka, topic, records)
            pool.submit(send, side.librdkafka, topic, records, rate).result()
            return receiving.result()

        cost = cost_of(side, work)
    delete_topic(side.broker, topic)
    return *cost.returned, cost.usage.total_s


def find_highest(sides: Sequence[Side]) -> None:
    """Records a second, the same for all sides."""
    if HIGHEST in sides[0].memo:
        return
    rates = []
    for side in sides:
        records = side.amount(HIGHEST_RECORDS, at_least=2_000)
        through(side, records, 0)
        _, elapsed_s, _ = through(side, records, 0)
        rates.append(records / elapsed_s)
    for side in sides:
        side.memo[HIGHEST] = min(rates)


def drive(percent: int, side: Side) -> Figures:
    rate = side.memo[HIGHEST] * percent / 100
    records = max(100, int(rate * SECONDS * min(1, side.contenders.scale)))
    latencies, elapsed_s, used_s = through(side, records, rate)
    return {
        **latency_figures(latencies),
        ("broker", "CPU µs/record"): used_s / records * 1e6,
        ("the rate", "records/s sent"): records / elapsed_s,
    }


WORKLOADS: Final = tuple(
    Workload(
        name=f"end_to_end/{percent}",
        description=f"From produce() to poll() of {VALUE_BYTES:,} B records at {percent} % of the highest rate",
        setup=ONE_NODE,
        prepare=find_highest,
        drive=partial(drive, percent),
        warm_up=1,
    )
    for percent in PERCENTS
)
