"""What metrics cost a broker: processor time with `odradek.metrics.listener` and without, and the scrapes.

The cost is that of `tests/benchmarks/metrics_cost/turns.py`. Of a broker with 10,000 partitions: what a scrape takes,
and how long other requests wait meanwhile.
"""

from __future__ import annotations

import re
import tempfile
import threading
import time
import urllib.request
from pathlib import Path

import psutil
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.protocol.messages.api_versions import ApiVersionsRequest
from tests.benchmarks.measure import percentile
from tests.benchmarks.metrics_cost.turns import Rhythm, interval, measured, percent
from tests.support.processes.odradek_process import OdradekBroker, running
from tests.support.processes.ports import free_port
from tests.support.wire.raw_client import RawClient


def measure_cost(directory: Path, rhythm: Rhythm) -> None:
    """First what the method finds where there is nothing to find."""
    title = rhythm.name.lower()
    print(
        f"  {title}: more processor time, the median of the turns and its interval of 95 %; both without metrics; with"
    )
    for name, ratios in measured(directory / title, rhythm).items():
        shown = [
            f"{percent(found.median)} [{percent(found.low)}, {percent(found.high)}]" for found in map(interval, ratios)
        ]
        print(f"    {name:48} {'; '.join(shown)}", flush=True)


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
        for rhythm in Rhythm:
            measure_cost(Path(directory), rhythm)
        measure_scrape(Path(directory))


if __name__ == "__main__":
    main()
