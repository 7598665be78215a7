"""From the start of the process to the first Metadata answer, on an empty directory."""

from __future__ import annotations

import os
import statistics
import time

from odradek.protocol.messages.metadata import MetadataRequest
from tests.benchmarks.contenders import Contender, Contenders
from tests.benchmarks.measure import Table, resident_mb, usage_of
from tests.support.wire.raw_client import ConnectionClosedError, RawClient

ODRADEK_ROUNDS = 10
APACHE_ROUNDS = 3
POLL_INTERVAL_S = 0.002


def run(contenders: Contenders) -> None:
    table = Table(f"Start to first Metadata (medians of {ODRADEK_ROUNDS} and {APACHE_ROUNDS} starts)")
    start_of(contenders.new_odradek("compiles"))  # fills the cache of compiled modules
    ours = [start_of(contenders.new_odradek(f"start-{number}")) for number in range(ODRADEK_ROUNDS)]
    theirs = [start_of(contenders.new_apache(f"start-{number}")) for number in range(APACHE_ROUNDS)]
    for column, (name, unit) in enumerate((("first answer", "s"), ("processor time", "s"), ("resident then", "MB"))):
        table.row(name, unit, _median(ours, column), _median(theirs, column))


def start_of(broker: Contender) -> tuple[float, float, float]:
    """Seconds to the first answer that names a broker, processor seconds and resident MB by then."""
    started = time.perf_counter()
    broker.launch()
    try:
        while not names_a_broker(broker):
            time.sleep(POLL_INTERVAL_S)
        elapsed = time.perf_counter() - started
        return elapsed, usage_of(broker.pid).total_s, resident_mb(broker.pid)
    finally:
        broker.close()


def names_a_broker(broker: Contender) -> bool:
    try:
        with RawClient(broker.host, broker.port) as client:
            answer = client.call(MetadataRequest(topics=[]), 9)
    except (OSError, ConnectionClosedError):
        os.kill(broker.pid, 0)
        return False
    return bool(answer.brokers)  # type: ignore[attr-defined]


def _median(rounds: list[tuple[float, float, float]], column: int) -> float:
    return statistics.median(figures[column] for figures in rounds)
