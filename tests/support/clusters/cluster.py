"""A cluster: a real ZooKeeper and brokers by id, each of them Apache Kafka or Odradek.

An id keeps its port and its log directory, whichever kind of broker serves it: `replace` hands them from one kind to
the other. Both kinds get the same settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from odradek.protocol.messages.metadata import MetadataRequest, MetadataResponse
from tests.support.admin import Admin
from tests.support.clusters.cluster_tree import ClusterTree
from tests.support.processes import pauses
from tests.support.processes.apache.apache import ApacheBroker, ZooKeeper
from tests.support.processes.apache.jvm import QUICK_START
from tests.support.processes.namespaces import Network
from tests.support.processes.odradek_process import STARTED, OdradekBroker
from tests.support.processes.ports import free_port
from tests.support.waiting import eventually
from tests.support.wire.raw_client import RawClient

Kind = Literal["odradek", "apache"]
ClusterBroker = ApacheBroker | OdradekBroker

SESSION_TIMEOUT_S: Final = 6
SETTLE_TIMEOUT_S: Final = 60
"""For steps that take a second on an idle machine."""

SETTINGS: Final[Mapping[str, str]] = {
    "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_S * 1000),
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "default.replication.factor": "3",
    "auto.leader.rebalance.enable": "false",  # leaders stay where a test has put them
    "replica.lag.time.max.ms": "4000",
    "replica.fetch.backoff.ms": "200",
    "controlled.shutdown.retry.backoff.ms": "500",
    "log.retention.ms": "-1",  # tests write records of long ago
}
METADATA_VERSION: Final = 12
JVM_OPTIONS: Final = ("-Xmx256m", *QUICK_START)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """The cluster according to one broker's Metadata answer."""

    controller: int
    brokers: frozenset[int]
    leaders: Mapping[tuple[str, int], int]


def described_by(host: str, port: int) -> View:
    """The Metadata answer of the broker at that address."""
    with RawClient(host, port) as client:
        answer = client.call(MetadataRequest(topics=None), METADATA_VERSION)
    assert isinstance(answer, MetadataResponse)
    return View(
        controller=answer.controller_id,
        brokers=frozenset(broker.node_id for broker in answer.brokers),
        leaders={
            (topic.name or "", partition.partition_index): partition.leader_id
            for topic in answer.topics
            for partition in topic.partitions
        },
    )


class Cluster:
    """Brokers of one ZooKeeper. Nothing runs before `start`."""

    def __init__(
        self,
        directory: Path,
        zookeeper: ZooKeeper,
        kinds: Mapping[int, Kind],
        settings: Mapping[str, str] | None = None,
        *,
        own_settings: Callable[[int], Mapping[str, str]] = lambda broker_id: {},
        zookeeper_address: Callable[[int], str] | None = None,
        odradek: type[OdradekBroker] = OdradekBroker,
        network: Network | None = None,
        jvm: Sequence[str] = JVM_OPTIONS,
    ) -> None:
        """`own_settings`: what only that broker gets; `{port}` in a value is its port. `zookeeper_address`: where that
        broker finds ZooKeeper, if it has a way of its own. `odradek`: how the daemon is started. `network`: has a host
        for each id, by its number. `jvm`: how Apache's brokers are run.
        """
        self._directory = directory
        self.connect = zookeeper.new_chroot()
        self._settings = {**SETTINGS, **(settings or {})}
        self._own_settings = own_settings
        self._zookeeper_address = zookeeper_address
        self._odradek = odradek
        self._network = network
        self._jvm = jvm
        self.ports = {broker_id: free_port() for broker_id in kinds}
        self.brokers = {broker_id: self._make(broker_id, kind) for broker_id, kind in kinds.items()}
        self._running: set[int] = set()
        self._tree: ClusterTree | None = None

    def _make(self, broker_id: int, kind: Kind) -> ClusterBroker:
        directory = self._directory / f"broker-{broker_id}"
        address, _, chroot = self.connect.partition("/")
        if self._zookeeper_address is not None:
            address = self._zookeeper_address(broker_id)
        settings = {
            **self._settings,
            "broker.id": str(broker_id),
            "log.dirs": str(self.log_dir(broker_id)),
            "zookeeper.connect": f"{address}/{chroot}",
            **self._own_settings(broker_id),
        }
        prefix = () if self._network is None else self._network.prefix(str(broker_id))
        port, host = self.ports[broker_id], self.host(broker_id)
        settings = {key: value.replace("{port}", str(port)) for key, value in settings.items()}
        if kind == "apache":
            return ApacheBroker(directory, settings["zookeeper.connect"], settings, self._jvm, port, host, prefix)
        broker = self._odradek(directory, settings, port)
        broker.host = host
        broker.prefix = (*prefix, *broker.prefix)
        return broker

    # Brokers

    def start(self, *ids: int) -> None:
        """Start these brokers, or all; when it returns, each is registered and knows the controller."""
        started = ids or tuple(self.brokers)
        for broker_id in started:
            if self._tree is not None:  # a broker that was killed is registered until its session is over
                eventually(lambda broker_id=broker_id: broker_id not in self.tree.broker_ids(), timeout_s=30)  # type: ignore[misc]
            self.brokers[broker_id].launch()
            self._running.add(broker_id)
        for broker_id in started:
            self.brokers[broker_id].wait_for_line(STARTED)
        eventually(lambda: self.tree.broker_ids() >= set(started), timeout_s=SETTLE_TIMEOUT_S)
        self.await_controller()

    def stop(self, broker_id: int) -> None:
        """A controlled shutdown."""
        self._running.discard(broker_id)
        self.brokers[broker_id].stop()

    def kill(self, *ids: int) -> None:
        """kill -9. ZooKeeper notices when the sessions time out."""
        for broker_id in ids:
            self._running.discard(broker_id)
            self.brokers[broker_id].close()

    def kill_noticed(self, broker_id: int) -> None:
        """kill -9, and ZooKeeper notices at once: where it does not matter how long that takes."""
        self.kill(broker_id)
        self.tree.expire(broker_id)

    def pause(self, broker_id: int) -> None:
        pauses.pause(self.brokers[broker_id].pid)

    def resume(self, broker_id: int) -> None:
        pauses.resume(self.brokers[broker_id].pid)

    def replace(self, broker_id: int, kind: Kind) -> None:
        """Stop a broker, and start one of the other kind with its id, port and log directory."""
        self.stop(broker_id)
        self.brokers[broker_id] = self._make(broker_id, kind)
        self.start(broker_id)

    def close(self) -> None:
        """Kill all processes."""
        for broker in self.brokers.values():
            broker.close()
        if self._tree is not None:
            self._tree.close()

    # What it is like

    @property
    def tree(self) -> ClusterTree:
        if self._tree is None:
            self._tree = ClusterTree(self.connect)
        return self._tree

    @property
    def running(self) -> frozenset[int]:
        return frozenset(self._running)

    @property
    def bootstrap(self) -> str:
        """The addresses of all brokers, also of those that do not run."""
        return ",".join(map(self.address, self.ports))

    def address(self, broker_id: int) -> str:
        return f"{self.host(broker_id)}:{self.ports[broker_id]}"

    def host(self, broker_id: int) -> str:
        return "127.0.0.1" if self._network is None else self._network.address(str(broker_id))

    def admin(self) -> Admin:
        return Admin(self.bootstrap)

    def log_dir(self, broker_id: int) -> Path:
        return self._directory / f"broker-{broker_id}" / "logs"

    def log_text(self, broker_id: int) -> str:
        """What every broker with that id has ever logged."""
        directory = self._directory / f"broker-{broker_id}"
        return "".join(path.read_text(errors="replace") for path in sorted(directory.glob("*.log")))

    def metadata(self, broker_id: int) -> View:
        """The Metadata answer of a broker."""
        return described_by(self.host(broker_id), self.ports[broker_id])

    def check_logs(self) -> None:
        """Fail if a broker has logged a traceback."""
        for broker_id in self.brokers:
            for path in (self._directory / f"broker-{broker_id}").glob("odradek.log"):
                text = path.read_text(errors="replace")
                assert "Traceback" not in text, f"{path}: {text[text.index('Traceback') - 300 :][:4000]}"

    # Waiting

    def await_controller(self, *, among: Iterable[int] = ()) -> int:
        """Wait until one broker (of `among`, or any) is the controller and every running broker says so."""
        allowed = set(among) or set(self.brokers)

        def agreed() -> int | None:
            controller = self.tree.controller()
            named = {self.metadata(broker_id).controller for broker_id in self._running}
            return controller if controller in allowed and named == {controller} else None

        return eventually(agreed, accept=lambda found: found is not None, timeout_s=SETTLE_TIMEOUT_S) or 0

    def await_known(self, *topics: str) -> None:
        """Wait until every running broker says of these topics what ZooKeeper says."""

        def disagreements() -> list[object]:
            true = {
                (topic, partition): state.leader
                for topic in topics
                for partition, state in self.tree.partitions(topic).items()
            }
            views = [self.metadata(broker_id) for broker_id in self._running]
            return [(view, true) for view in views if not true.items() <= view.leaders.items()]

        eventually(disagreements, accept=lambda found: not found, timeout_s=SETTLE_TIMEOUT_S)

    def make_controller(self, broker_id: int) -> None:
        """Let this broker win the next election: the others are paused during it."""
        if self.tree.controller() == broker_id:
            return
        others = self._running - {broker_id}
        for other in others:
            self.pause(other)
        try:
            self.tree.delete_controller()
            eventually(self.tree.controller, accept=lambda found: found == broker_id)
        finally:
            for other in others:
                self.resume(other)
        self.await_controller(among=[broker_id])

    def await_complete(self, *topics: str) -> None:
        """Wait until all replicas of these topics are in sync."""
        for topic in topics:
            eventually(
                lambda topic=topic: (self.tree.is_complete(topic), self.tree.partitions(topic)),  # type: ignore[misc]
                accept=lambda seen: seen[0],
                timeout_s=SETTLE_TIMEOUT_S,
            )


@contextmanager
def running_cluster(cluster: Cluster) -> Iterator[Cluster]:
    """Start all brokers, and end them in any case."""
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.close()
