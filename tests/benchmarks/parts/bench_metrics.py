"""What metrics cost a broker: processor time with `odradek.metrics.listener` and without, and the scrapes.

Three brokers, two of them without metrics, with the same short loads in turns, so that a change of the machine meets
all of them. Each figure is the processor time of the broker's threads in nanoseconds: the median of the rounds. What
the two brokers without metrics differ by is the error of the measurement. Of a broker with 10,000 partitions: what a
scrape takes, and how long other requests wait meanwhile.
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
from itertools import permutations
from pathlib import Path

import psutil
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.protocol.messages.api_versions import ApiVersionsRequest
from tests.benchmarks.measure import percentile
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.processes.ports import free_port
from tests.support.wire.raw_client import RawClient

ROUNDS = 30
TOPIC = "load"
RECORD = b"x" * 1000
BATCHED = 40_000
"""Records of a load in batches."""


class Contender:
    """One broker, and the processor time that loads have taken."""

    def __init__(self, name: str, broker: OdradekBroker) -> None:
        self.name = name
        self.broker = broker
        self.used_ns: dict[str, list[int]] = {}

    def load(self, name: str, work: Callable[[str], None]) -> None:
        before_ns = processor_ns(self.broker.pid)
        work(self.broker.bootstrap)
        self.used_ns.setdefault(name, []).append(processor_ns(self.broker.pid) - before_ns)


def processor_ns(pid: int) -> int:
    """Of all threads of a process. `psutil` has it in steps of 10 ms, which is too coarse."""
    return sum(int(path.read_text().split()[0]) for path in Path(f"/proc/{pid}/task").glob("*/schedstat"))


def produce_single(bootstrap: str) -> None:
    """5,000 requests of one record, up to five in flight."""
    _produce(bootstrap, 5_000, {"batch.num.messages": 1, "linger.ms": 0})


def produce_batches(bootstrap: str) -> None:
    """40 MB in batches of 16 KB."""
    _produce(bootstrap, BATCHED, {"batch.size": 16_384, "linger.ms": 5})


def _produce(bootstrap: str, records: int, settings: dict[str, object]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "queue.buffering.max.messages": 1_000_000, **settings})
    for number in range(records):
        producer.produce(TOPIC, RECORD, partition=number % 6)
        if not number % 1000:
            producer.poll(0)
    producer.flush()


def consume(bootstrap: str) -> None:
    """40 MB, as they were produced."""
    settings = {"bootstrap.servers": bootstrap, "group.id": f"g{time.time_ns()}", "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "enable.auto.commit": False})
    consumer.subscribe([TOPIC])
    found = 0
    while found < BATCHED:
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
        for name in ("off", "off too", "on"):
            settings = {"odradek.metrics.listener": str(free_port())} if name == "on" else {}
            broker = OdradekBroker(directory / name.replace(" ", "_"), settings)
            stack.enter_context(running(broker))
            client = AdminClient({"bootstrap.servers": broker.bootstrap})
            client.create_topics([NewTopic(TOPIC, 6, 1)])[TOPIC].result()
            contenders.append(Contender(name, broker))
        orders = list(permutations(contenders))
        for number in range(ROUNDS + 1):
            for name, work in LOADS.items():
                for contender in orders[number % len(orders)]:
                    contender.load(name, work)
        for name in LOADS:
            off, off_too, on = (statistics.median(each.used_ns[name][1:]) / 1e6 for each in contenders)
            without = (off + off_too) / 2
            print(
                f"  {name}: {without:.1f} ms off, {on:.1f} ms on, {(on / without - 1) * 100:+.1f} % "
                f"(the two without: {(off_too / off - 1) * 100:+.1f} %)"
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
