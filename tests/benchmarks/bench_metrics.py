"""What metrics cost a broker: processor time with `odradek.metrics.listener` and without, and the scrapes.

Two brokers with the same load in turns, so that a change of the machine meets both. Each figure is the processor time
of the broker's process for the load: the least of the rounds, which other work on the machine disturbs least. Of a
broker with 10,000 partitions: what a scrape takes, and how long other requests wait meanwhile.
"""

from __future__ import annotations

import re
import statistics
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import psutil
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.protocol.messages.api_versions import ApiVersionsRequest
from tests.benchmarks.measure import percentile
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.processes.ports import free_port
from tests.support.wire.raw_client import RawClient

ROUNDS = 5
TOPIC = "load"
RECORD = b"x" * 1000


class Contender:
    """One broker, and the processor time that loads have taken."""

    def __init__(self, name: str, broker: OdradekBroker, metrics_port: int) -> None:
        self.name = name
        self.broker = broker
        self.metrics_port = metrics_port
        self.process = psutil.Process(broker.pid)
        self.used: dict[str, list[float]] = {}

    def load(self, name: str, work: Callable[[str], None]) -> None:
        before = self.process.cpu_times()
        work(self.broker.bootstrap)
        after = self.process.cpu_times()
        self.used.setdefault(name, []).append(after.user + after.system - before.user - before.system)


def produce_single(bootstrap: str) -> None:
    """20,000 requests of one record, up to five in flight."""
    _produce(bootstrap, 20_000, {"batch.num.messages": 1, "linger.ms": 0})


def produce_batches(bootstrap: str) -> None:
    """200 MB in batches of 16 KB."""
    _produce(bootstrap, 200_000, {"batch.size": 16_384, "linger.ms": 5})


def _produce(bootstrap: str, records: int, settings: dict[str, object]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 1_000_000, **settings})
    for number in range(records):
        producer.produce(TOPIC, RECORD, partition=number % 6)
        if not number % 1000:
            producer.poll(0)
    producer.flush()


def consume(bootstrap: str) -> None:
    """The same 200 MB again."""
    settings = {"bootstrap.servers": bootstrap, "group.id": f"g{time.time_ns()}", "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.subscribe([TOPIC])
    found = 0
    while found < 200_000:
        found += len(consumer.consume(10_000, 1))
    consumer.close()


LOADS = {
    "produce, one record a request": produce_single,
    "produce, 16 KB batches": produce_batches,
    "consume": consume,
}


def measure_cost(directory: Path) -> None:
    with ExitStack() as stack:
        contenders = []
        for name in ("off", "on"):
            port = free_port() if name == "on" else 0
            settings = {"odradek.metrics.listener": str(port)} if port else {}
            broker = OdradekBroker(directory / name, settings)
            stack.enter_context(running(broker))
            client = AdminClient({"bootstrap.servers": broker.bootstrap})
            client.create_topics([NewTopic(TOPIC, 6, 1)])[TOPIC].result()
            contenders.append(Contender(name, broker, port))
        for number in range(ROUNDS + 1):
            for name, work in LOADS.items():
                for contender in contenders if number % 2 else contenders[::-1]:
                    contender.load(name, work)
        for name in LOADS:
            off, on = (min(each.used[name][1:]) for each in contenders)
            middle = [statistics.median(each.used[name][1:]) for each in contenders]
            print(
                f"  {name}: {off:.2f} s off, {on:.2f} s on, {(on / off - 1) * 100:+.1f} % "
                f"(medians {(middle[1] / middle[0] - 1) * 100:+.1f} %)"
            )


def measure_scrape(directory: Path, partitions: int = 10_000) -> None:
    port = free_port()
    settings = {
        "odradek.metrics.listener": str(port),
        "odradek.metrics.max.partitions": str(partitions * 2),
        "odradek.event.loop.pause.ms": "25",
    }
    broker = OdradekBroker(directory / "scrape", settings)
    with running(broker):
        client = AdminClient({"bootstrap.servers": broker.bootstrap})
        for first in range(0, partitions, 1000):
            client.create_topics([NewTopic(f"t{first}", 1000, 1)], request_timeout=120)[f"t{first}"].result()
        url = f"http://127.0.0.1:{port}/metrics"
        process = psutil.Process(broker.pid)
        time.sleep(3)
        lines_before = len(broker.log_text().splitlines())
        answers_ms: list[float] = []
        is_over = threading.Event()
        asking = threading.Thread(target=ask, args=(broker, is_over, answers_ms))
        asking.start()
        for _ in range(5):
            before, began = process.cpu_times(), time.perf_counter()
            text = urllib.request.urlopen(url, timeout=60).read()
            after = process.cpu_times()
            used = after.user + after.system - before.user - before.system
            lines, size = text.count(b"\n"), len(text) >> 20
            took = f"{used:.2f} s of processor time, {time.perf_counter() - began:.2f} s"
            print(f"  {partitions} partitions: {lines} lines, {size} MB, {took}")
        is_over.set()
        asking.join()
        answers_ms.sort()
        print(
            f"  {len(answers_ms)} other requests meanwhile: median {percentile(answers_ms, 0.5):.1f} ms, "
            f"p99 {percentile(answers_ms, 0.99):.1f} ms, longest {answers_ms[-1]:.1f} ms"
        )
        log = "\n".join(broker.log_text().splitlines()[lines_before:])
        pauses = [
            (int(own), int(whole)) for whole, own in re.findall(r"held up for (\d+) ms \((\d+) ms computing", log)
        ]
        own_ms = max((own for own, _ in pauses), default=0)
        print(f"  {len(pauses)} pauses of the loop beyond 25 ms; the longest computation in one of them: {own_ms} ms")


def ask(broker: OdradekBroker, is_over: threading.Event, answers_ms: list[float]) -> None:
    """Send one small request after the other, and note how long each took."""
    with RawClient(broker.host, broker.port) as client:
        while not is_over.is_set():
            began = time.perf_counter()
            client.call(ApiVersionsRequest(), 0)
            answers_ms.append((time.perf_counter() - began) * 1000)


def main() -> None:
    with tempfile.TemporaryDirectory() as directory:
        measure_cost(Path(directory))
        measure_scrape(Path(directory))


if __name__ == "__main__":
    main()
