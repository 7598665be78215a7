"""Memory of a new broker: at rest, the most under load, and after it."""

from __future__ import annotations

import threading
import time
from typing import Final

from tests.benchmarks.clients import librdkafka
from tests.benchmarks.comparison.setups import NOTHING
from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import Side, Workload
from tests.benchmarks.contenders import Contender, create_topic
from tests.benchmarks.measure import resident_mb

TOPIC: Final = "memory"
PARTITIONS: Final = 100
RECORDS: Final = 300_000
SETTLE_S: Final = 2
LOOK_PAUSE_S: Final = 0.05


class Peak:
    """Looks at the memory of a broker until the block ends."""

    def __init__(self, broker: Contender) -> None:
        self.mb = 0.0
        self._broker = broker
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._ended.wait(LOOK_PAUSE_S):
            self.mb = max(self.mb, resident_mb(self._broker.pid))


def drive(side: Side) -> Figures:
    broker = side.contenders.new(side.label, "memory")
    records = side.amount(RECORDS, at_least=PARTITIONS)
    try:
        broker.start()
        time.sleep(SETTLE_S)
        at_rest = resident_mb(broker.pid)
        create_topic(broker, TOPIC, PARTITIONS)
        with Peak(broker) as peak:
            client = {"bootstrap.servers": broker.bootstrap}
            librdkafka.produce({**client, "batch.size": 131_072}, TOPIC, PARTITIONS, records)
            librdkafka.consume(client, TOPIC, PARTITIONS, records)
        time.sleep(SETTLE_S)
        after = resident_mb(broker.pid)
    finally:
        broker.close()
    return {
        ("at rest", "MB"): at_rest,
        ("the most under load", "MB"): max(peak.mb, at_rest, after),
        ("after the load", "MB"): after,
    }


WORKLOADS: Final = (
    Workload(
        name="memory",
        description=f"Resident memory of a new broker: at rest, while 300 MB are produced and consumed, "
        f"{PARTITIONS} partitions, and after",
        setup=NOTHING,
        drive=drive,
        warm_up=0,
    ),
)
