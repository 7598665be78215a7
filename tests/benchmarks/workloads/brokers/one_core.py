"""What one core of broker is: Odradek pinned to one, Apache Kafka to one and to two.

The clients run on the other cores. On a machine of two cores, Apache's second core is that of the clients. How busy a
broker is says whether the broker or the clients are the limit.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import Final

from tests.benchmarks.clients.pipelined import pump
from tests.benchmarks.clients.processes import client_processes
from tests.benchmarks.comparison.costs import cost_of
from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import APACHE, ODRADEK, Setup, Side, Workload
from tests.benchmarks.contenders import Contenders, create_topic
from tests.benchmarks.workloads.growth.long_polling import fetch_frame
from tests.benchmarks.workloads.records import many_clients
from tests.benchmarks.workloads.records.latency import produce_frame

TOPIC: Final = "one-core"
REQUESTS: Final = 60_000
CONNECTIONS: Final = 8
UNDER_WAY: Final = 5
"""Requests of a connection."""
CLIENTS: Final = 2
BROKER_CORE: Final = 0
CLIENT_CORES: Final = tuple(sorted(os.sched_getaffinity(0) - {BROKER_CORE}))


def pinned(apache_cores: int) -> Callable[[Contenders, str], AbstractContextManager[Side]]:
    @contextmanager
    def start(contenders: Contenders, label: str) -> Iterator[Side]:
        count = apache_cores if label.startswith(APACHE) else 1
        cores = ",".join(map(str, range(BROKER_CORE, BROKER_CORE + count)))
        broker = contenders.new(label, "pinned", prefix=("taskset", "--cpu-list", cores))
        try:
            broker.start()
            yield Side(label, contenders, [broker])
        finally:
            broker.close()

    return start


def prepare(sides: Sequence[Side]) -> None:
    for side in sides:
        if TOPIC not in side.memo:
            create_topic(side.broker, TOPIC, 1)
            pump(side.broker.host, side.broker.port, produce_frame(TOPIC), 1, 1, 1)
            side.memo[TOPIC] = True


def requests(frame: bytes, side: Side) -> Figures:
    count = side.amount(REQUESTS, at_least=CONNECTIONS)
    with client_processes(1, CLIENT_CORES) as pool:
        sent = (side.broker.host, side.broker.port, frame, count, CONNECTIONS, UNDER_WAY)
        cost = cost_of(side, lambda: pool.submit(pump, *sent).result())
    return {
        ("requests", "requests/s"): count / cost.elapsed_s,
        ("a request", "CPU µs"): cost.usage.total_s / count * 1e6,
        ("the broker", "% busy"): cost.usage.total_s / cost.elapsed_s * 100,
    }


def workloads(name: str, described: str, setup: Setup) -> Iterator[Workload]:
    loads = {
        "produce-requests": ("Produce requests of one record", prepare, partial(requests, produce_frame(TOPIC))),
        "fetch-requests": ("Fetch requests of one record", prepare, partial(requests, _fetch_one())),
        "produce": (
            f"{CLIENTS} librdkafka producers, 16 KB batches",
            lambda sides: None,
            partial(many_clients.produce, CLIENTS, cores=CLIENT_CORES),
        ),
        "consume": (
            f"{CLIENTS} librdkafka consumers",
            many_clients.prepare,
            partial(many_clients.consume, CLIENTS, cores=CLIENT_CORES),
        ),
    }
    for load, (what, before, drive) in loads.items():
        yield Workload(
            name=f"one_core/{name}-{load}",
            description=f"{what}; {described}",
            setup=setup,
            prepare=before,
            drive=drive,
        )


def _fetch_one() -> bytes:
    """The first record of the topic, alone."""
    return fetch_frame(TOPIC, 0, 0, max_bytes=1)


WORKLOADS: Final = (
    *workloads("one", "each broker on one core", Setup("both on one core", pinned(1), (ODRADEK, APACHE))),
    *workloads(
        "two",
        "Odradek on one core, Apache Kafka on two",
        Setup("Odradek on one core, Apache Kafka on two", pinned(2), (ODRADEK, f"{APACHE} on two")),
    ),
)
