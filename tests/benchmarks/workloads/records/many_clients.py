"""More and more producers and consumers at once, each in a process of its own: what the broker can do at most.

Its share of a core says whether the broker is the limit, or the clients that share the machine with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Final

from tests.benchmarks.clients import librdkafka
from tests.benchmarks.clients.librdkafka import RECORD_BYTES
from tests.benchmarks.clients.processes import client_processes
from tests.benchmarks.comparison.costs import Cost, bulk_figures, cost_of
from tests.benchmarks.comparison.setups import ONE_NODE
from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import Side, Workload
from tests.benchmarks.contenders import create_topic, delete_topic

TOPIC: Final = "many-clients"
PARTITIONS: Final = 6
BATCH_BYTES: Final = 16_384
COUNTS: Final = (1, 2, 4, 8)
RECORDS: Final = 300_000
"""Of all producers together. Each consumer reads so many."""


def produce(count: int, side: Side, cores: Sequence[int] = ()) -> Figures:
    """`cores`: where the clients run; anywhere if it is empty."""
    topic, each = side.new_topic("produced"), side.amount(RECORDS, at_least=100) // count
    create_topic(side.broker, topic, PARTITIONS)
    client = {**side.librdkafka, "batch.size": BATCH_BYTES}
    with client_processes(count, cores) as pool:

        def work() -> None:
            sent = [pool.submit(librdkafka.produce, client, topic, PARTITIONS, each) for _ in range(count)]
            for done in sent:
                done.result()

        cost = cost_of(side, work)
    delete_topic(side.broker, topic)
    return shares(cost, each * count * RECORD_BYTES)


def prepare(sides: Sequence[Side]) -> None:
    for side in sides:
        if TOPIC not in side.memo:
            side.memo[TOPIC] = side.amount(RECORDS, at_least=PARTITIONS)
            create_topic(side.broker, TOPIC, PARTITIONS)
            client = {**side.librdkafka, "batch.size": 131_072}
            librdkafka.produce(client, TOPIC, PARTITIONS, side.memo[TOPIC])


def consume(count: int, side: Side, cores: Sequence[int] = ()) -> Figures:
    records = side.memo[TOPIC]
    with client_processes(count, cores) as pool:

        def work() -> None:
            read = [pool.submit(librdkafka.consume, side.librdkafka, TOPIC, PARTITIONS, records) for _ in range(count)]
            for done in read:
                done.result()

        cost = cost_of(side, work)
    return shares(cost, records * count * RECORD_BYTES)


def shares(cost: Cost, size: int) -> Figures:
    """With how busy the broker is: 100 % are one core."""
    return {**bulk_figures(cost, size), ("the broker", "% busy"): cost.usage.total_s / cost.elapsed_s * 100}


WORKLOADS: Final = (
    *(
        Workload(
            name=f"many_clients/produce-{count}",
            description=f"{count} librdkafka producer{'s' * (count > 1)} at once, 16 KB batches, 6 partitions",
            setup=ONE_NODE,
            drive=partial(produce, count),
            warm_up=1,
            series=("producers", float(count)),
        )
        for count in COUNTS
    ),
    *(
        Workload(
            name=f"many_clients/consume-{count}",
            description=f"{count} librdkafka consumer{'s' * (count > 1)} of a topic at once, 6 partitions",
            setup=ONE_NODE,
            prepare=prepare,
            drive=partial(consume, count),
            warm_up=1,
            series=("consumers", float(count)),
        )
        for count in COUNTS
    ),
)
