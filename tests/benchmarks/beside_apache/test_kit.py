"""The broker of a test: how long a test waits for it, in a thread and in a process of its own, beside Apache's JVM.

A cold start is that of a new interpreter, with its own start and all imports; a warm start is another one in the same
process. A first message is acknowledged by all replicas of a new topic. Apache Kafka has no reset: a test that needs a
clean broker starts another one.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import count

from odradek.protocol.api import ApiKey
from odradek.testing import Broker
from tests.benchmarks.contenders import Contender, Contenders, create_topic
from tests.benchmarks.measure import Table
from tests.benchmarks.workloads.brokers.start_up import POLL_INTERVAL_S, names_a_broker
from tests.support.wire.raw_client import RawClient
from tests.support.wire.requests import batch, build

COLD_ROUNDS = 5
WARM_ROUNDS = 20
APACHE_ROUNDS = 3

COLD = "from odradek.testing import Broker; Broker(own_process={own_process}).start(); import os; os._exit(0)"

DOCUMENTED = (
    "Documented for brokers in containers, without the container: 1.15 to 1.2 s on a JVM, 0.11 to 0.14 s for the "
    "native image (KIP-974)"
)


def run(contenders: Contenders) -> None:
    apache = [start_and_first_message(contenders.new_apache(f"kit-{number}")) for number in range(APACHE_ROUNDS)]
    start_s, message_s = (statistics.median(column) for column in zip(*apache, strict=True))
    for own_process in (False, True):
        rows(own_process, start_s, message_s)
    print(DOCUMENTED)


def rows(own_process: bool, start_s: float, message_s: float) -> None:
    where = "a process of its own" if own_process else "a thread of the test process"
    table = Table(f"The broker of a test in {where} (medians of {COLD_ROUNDS}, {WARM_ROUNDS}, {APACHE_ROUNDS})")
    cold(own_process)  # fills the cache of compiled modules
    table.row("cold start, with the interpreter", "s", median(COLD_ROUNDS, lambda: cold(own_process)), start_s)
    Broker(own_process=own_process).start().stop()
    table.row("warm start", "s", median(WARM_ROUNDS, lambda: warm(own_process)), start_s)
    with Broker(own_process=own_process) as broker:
        table.row("reset", "s", median(WARM_ROUNDS, lambda: timed(broker.reset)), start_s)
        numbers = count()
        first = median(WARM_ROUNDS, lambda: timed(lambda: first_message(broker, f"topic-{next(numbers)}")))
        table.row("first message, with its topic", "s", first, message_s)


def median(rounds: int, measured: Callable[[], float]) -> float:
    return statistics.median(measured() for _ in range(rounds))


def timed(work: Callable[[], object]) -> float:
    """Seconds."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def cold(own_process: bool) -> float:
    script = COLD.format(own_process=own_process)
    return timed(lambda: subprocess.run([sys.executable, "-c", script], check=True, timeout=60))


def warm(own_process: bool) -> float:
    broker = Broker(own_process=own_process)
    try:
        return timed(broker.start)
    finally:
        broker.stop()


def first_message(broker: Broker, topic: str) -> None:
    host, _, port = broker.bootstrap_servers.rpartition(":")
    described = {"name": topic, "num_partitions": 1, "replication_factor": 1}
    with RawClient(host, int(port)) as client:
        client.call(build(ApiKey.CREATE_TOPICS, topics=[described], timeout_ms=10_000), 5)
        produce(client, topic)


def produce(client: RawClient, topic: str) -> None:
    partition = {"index": 0, "records": batch(b"first")}
    topics = [{"name": topic, "partition_data": [partition]}]
    answer = client.call(build(ApiKey.PRODUCE, acks=-1, timeout_ms=10_000, topic_data=topics), 8)
    assert answer.responses[0].partition_responses[0].error_code == 0, answer  # type: ignore[attr-defined]


def start_and_first_message(broker: Contender) -> tuple[float, float]:
    """Seconds until a broker of its own answers with its name, and seconds for a new topic with its first message."""
    started = time.perf_counter()
    broker.launch()
    try:
        while not names_a_broker(broker):
            time.sleep(POLL_INTERVAL_S)
        start_s = time.perf_counter() - started

        def first() -> None:
            create_topic(broker, "first", 1)
            with RawClient(broker.host, broker.port) as client:
                produce(client, "first")

        return start_s, timed(first)
    finally:
        broker.close()
