"""From the start of the process to the first Metadata answer, on an empty directory."""

from __future__ import annotations

import os
import time
from typing import Final

from odradek.protocol.messages.metadata import MetadataRequest
from tests.benchmarks.comparison.setups import NOTHING
from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import Side, Workload
from tests.benchmarks.contenders import Contender
from tests.benchmarks.measure import resident_mb, usage_of
from tests.support.wire.raw_client import ConnectionClosedError, RawClient

POLL_INTERVAL_S: Final = 0.002


def start(side: Side) -> Figures:
    broker = side.contenders.new(side.label, "start")
    started = time.perf_counter()
    broker.launch()
    try:
        while not names_a_broker(broker):
            time.sleep(POLL_INTERVAL_S)
        return {
            ("first answer", "s"): time.perf_counter() - started,
            ("processor time", "CPU s"): usage_of(broker.pid).total_s,
            ("resident then", "MB"): resident_mb(broker.pid),
        }
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


WORKLOADS: Final = (
    Workload(
        name="start_up",
        description="From the start of the process to the first Metadata answer, on an empty directory",
        setup=NOTHING,
        drive=start,
        warm_up=1,  # it fills the cache of compiled modules
    ),
)
