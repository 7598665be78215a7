"""Two brokers of one machine, by `odradek serve --brokers 2`, beside one broker: several clients at once.

The clients use the same cores, so their cost is a figure, too.
"""

from __future__ import annotations

import re
import resource
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

from tests.benchmarks.comparison.statistics import Figures
from tests.benchmarks.comparison.workload import Setup, Side, Workload
from tests.benchmarks.contenders import SETTINGS, Contenders
from tests.benchmarks.workloads.records import many_clients
from tests.support.clusters.cluster import described_by
from tests.support.processes.odradek_process import OdradekBroker
from tests.support.waiting import eventually

CLIENTS: Final = 4
READY: Final = r"bootstrap servers +(\S+)"
TWO, ONE = "two brokers", "one broker"


class LocalCluster(OdradekBroker):
    """The processor time of its process has that of the brokers, its children, and of the metadata service in it."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory, SETTINGS)
        del self._settings["broker.id"]  # derived, like the ports
        self.options = ("--brokers", "2")
        self.port = 0
        self._addresses = ""

    @property
    def bootstrap(self) -> str:
        return self._addresses

    def start(self) -> None:
        """`port` is that of the controller, which creates topics."""
        self.launch()
        self.wait_for_line(READY)
        found = re.search(READY, self.log_text())
        assert found is not None
        self._addresses = found[1]
        ports = [int(address.rpartition(":")[2]) for address in self._addresses.split(",")]
        self.port = ports[eventually(lambda: described_by(self.host, ports[0]).controller, accept=ports_has(ports))]


def ports_has(ports: Sequence[int]) -> Callable[[int], bool]:
    return lambda broker_id: 0 <= broker_id < len(ports)


@contextmanager
def _start(contenders: Contenders, label: str) -> Iterator[Side]:
    directory = contenders.new_directory(label.replace(" ", "-"))
    broker = LocalCluster(directory) if label == TWO else OdradekBroker(directory, SETTINGS)
    try:
        broker.start()
        yield Side(label, contenders, [broker])
    finally:
        broker.close()


def drive(load: Callable[[int, Side], Figures], side: Side) -> Figures:
    """With the cost of the clients, which are children of this process and have ended."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    figures = load(CLIENTS, side)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {**figures, ("the clients, with their start", "CPU s"): used_s}


SETUP: Final = Setup("two brokers of Odradek, and one", _start, (TWO, ONE))

WORKLOADS: Final = (
    Workload(
        name="two_brokers/produce",
        description=f"{CLIENTS} librdkafka producers at once, 16 KB batches, 6 partitions, no replicas",
        setup=SETUP,
        drive=partial(drive, many_clients.produce),
        warm_up=1,
    ),
    Workload(
        name="two_brokers/consume",
        description=f"{CLIENTS} librdkafka consumers of a topic at once, 6 partitions",
        setup=SETUP,
        prepare=many_clients.prepare,
        drive=partial(drive, many_clients.consume),
        warm_up=1,
    ),
)
