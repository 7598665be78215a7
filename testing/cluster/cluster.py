"""`Cluster`: brokers and their metadata service for a test, which stops, kills, pauses and cuts them off.

with Cluster(3) as cluster:
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    cluster.kill(cluster.controller)

Each broker has a process of its own, the metadata service a thread of the test process. Data is in memory where the
platform has a file system for that.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Final, Self, cast

from odradek.controller.model.leader_and_isr import NO_LEADER
from odradek.testing.cluster.cluster_broker import ClusterBroker
from odradek.testing.cluster.cluster_questions import ClusterView
from odradek.testing.cluster.metadata_service import MetadataService
from odradek.testing.cluster.reserved_ports import ReservedPorts
from odradek.testing.errors import BrokerStopped, WaitTimedOut
from odradek.testing.node.files.data_directory import DataDirectory
from odradek.testing.node.fork_server import FORK_SERVERS
from odradek.testing.node.settings import broker_settings

if TYPE_CHECKING:
    from types import TracebackType

    from odradek.testing.node.settings import SettingValue

DEFAULT_TIMEOUT_S: Final = 30.0
"""Of waits for the cluster: a session that times out takes six seconds."""

_REPLICAS_MAX: Final = 3
_MIN_ISR: Final = 2


class Cluster:
    """Brokers 0, 1, ... on free ports of 127.0.0.1, as members of one cluster."""

    def __init__(
        self,
        brokers: int = 3,
        config: Mapping[str, SettingValue] | None = None,
        *,
        own_process: bool = True,
        **configs: SettingValue,
    ) -> None:
        """`config` and keywords as for `Broker`, for all brokers. Without `own_process` each broker has a thread of
        this process: a quicker start, but `kill`, `pause` and `resume` raise RuntimeError.
        """
        if brokers < 1:
            raise ValueError(f"{brokers} brokers: at least one is needed")
        self._number = brokers
        self._config = {**_defaults(brokers), **(config or {})}
        self._configs = configs
        self._own_process = own_process
        self._directory: DataDirectory | None = None
        self._home = 0
        """The process that has started the cluster, and stops it; a fork of it does not."""
        self._service: MetadataService | None = None
        self._ports = ReservedPorts()
        self._brokers: dict[int, ClusterBroker] = {}
        self._groups: tuple[frozenset[int], ...] = ()
        self._without_zookeeper: frozenset[int] = frozenset()

    # Start and stop

    def start(self) -> Self:
        """Start all; clients are served, and every broker knows all others, when it returns. Raises: StartupError."""
        if self._directory is not None:
            raise RuntimeError("the cluster has been started already")
        self._directory = DataDirectory()
        self._home = os.getpid()
        try:
            if self._own_process:
                FORK_SERVERS.start()
            self._service = MetadataService(os.path.join(self._directory.path, "zookeeper"), self._ports.reserve())
            self._service.open()
            for broker_id in range(self._number):
                self._brokers[broker_id] = self._make_broker(broker_id)
            self._for_all(ClusterBroker.start, self._brokers.values())
            self.wait_until_settled()
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop all, and remove the data. Does nothing if the cluster does not run, and in a forked process."""
        brokers, self._brokers = self._brokers, {}
        service, self._service = self._service, None
        directory, self._directory = self._directory, None
        self._groups, self._without_zookeeper = (), frozenset()
        if os.getpid() != self._home:
            return
        with ExitStack() as stops:  # all of it is done, also when a part fails
            stops.callback(self._ports.close)
            if directory is not None:
                stops.callback(directory.remove)
            if service is not None:
                stops.callback(service.close)
            stop = ClusterBroker.kill if self._own_process else ClusterBroker.stop
            stops.callback(self._for_all, stop, brokers.values())
            if not self._own_process and service is not None:
                stops.callback(service.cut, set())
                stops.callback(self._for_all, _connect_to_all, brokers.values())  # a controlled shutdown asks others

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def _make_broker(self, broker_id: int) -> ClusterBroker:
        assert self._directory is not None
        own: dict[str, SettingValue] = {
            "broker.id": broker_id,
            "log.dirs": os.path.join(self._directory.path, f"broker-{broker_id}"),
            "zookeeper.connect": self.zookeeper.address_for(broker_id),
        }
        settings = broker_settings({**self._config, **own}, self._configs)
        if "listeners" in settings:
            settings["listeners"] = self._ports.in_listeners(settings["listeners"])
        return ClusterBroker(broker_id, settings, own_process=self._own_process)

    @staticmethod
    def _for_all(action: object, brokers: Iterable[ClusterBroker]) -> None:
        """Do something with all brokers at the same time. Raises the first error when all are done."""
        brokers = list(brokers)
        if brokers:
            with ThreadPoolExecutor(len(brokers)) as pool:
                list(pool.map(action, brokers))  # type: ignore[arg-type]

    # What it is like

    @property
    def brokers(self) -> Mapping[int, ClusterBroker]:
        """All brokers by id, also those that do not run."""
        return self._brokers

    @property
    def zookeeper(self) -> MetadataService:
        """The metadata service: `stop()` and `start()` restart it under the brokers."""
        if self._service is None:
            raise BrokerStopped("The cluster does not run")
        return self._service

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of the brokers that run."""
        return ",".join(broker.bootstrap_servers for broker in self._brokers.values() if broker.state != "stopped")

    @property
    def controller(self) -> int:
        """The id of the controller."""
        controller = self._ask_view().controller
        assert controller is not None, "wait_until_settled waits for one"
        return controller

    def leader(self, topic: str, partition: int = 0) -> int:
        """The id of the broker that leads a partition; waits until there is one. Raises: WaitTimedOut."""
        return self.wait_for_leader(topic, partition)

    def in_sync_replicas(self, topic: str, partition: int = 0) -> set[int]:
        return set(self._ask_view(topic=topic, partition=partition).in_sync)

    # What a test does with it

    def stop_broker(self, broker_id: int) -> None:
        """A controlled shutdown; returns when the others know."""
        self.resume(broker_id)
        self._brokers[broker_id].stop()
        self.wait_until_settled()

    def start_broker(self, broker_id: int) -> ClusterBroker:
        """Start a broker that was stopped or killed, with its port and data."""
        broker = self._brokers[broker_id].start()
        self._hold_links()
        self.wait_until_settled()
        return broker

    def restart(self, broker_id: int) -> ClusterBroker:
        self.stop_broker(broker_id)
        return self.start_broker(broker_id)

    def kill(self, broker_id: int, *, notice: bool = True) -> None:
        """End a broker's process at once. With `notice` its session ends at once, too, and the others know when this
        returns; else they learn it when the session times out (`zookeeper.session.timeout.ms`).
        """
        self._brokers[broker_id].kill()
        if notice:
            self.zookeeper.expire_session(broker_id)
            self.wait_until_settled()

    def pause(self, broker_id: int) -> None:
        """The broker does nothing until `resume`; the others notice when its session times out."""
        self._brokers[broker_id].pause()

    def resume(self, broker_id: int) -> None:
        """Let a paused broker go on, in the network as it is at that time."""
        self._brokers[broker_id].resume()
        self._hold_links()

    def expire_session(self, broker_id: int) -> None:
        """End the session of a broker in the metadata service, as after its time-out: it registers again."""
        self.zookeeper.expire_session(broker_id)

    def add_broker(self) -> ClusterBroker:
        """Start one more broker, with the next id."""
        broker_id = max(self._brokers) + 1
        self._brokers[broker_id] = self._make_broker(broker_id)
        return self.start_broker(broker_id)

    def move_leader(self, topic: str, partition: int = 0, *, to: int) -> None:
        """Make a replica the leader, and the preferred one. Raises: ValueError with the reason if that cannot be."""
        controller = self._brokers[self.controller]
        error = cast("str | None", controller.ask("move_leader", topic=topic, partition=partition, to=to))
        if error is not None:
            raise ValueError(error)
        self.wait_for_leader(topic, partition, leader=to)

    def partition(self, *groups: Iterable[int], without_zookeeper: Iterable[int] = ()) -> None:
        """Cut the network between groups of brokers: requests and answers between them are lost until `heal`. Clients
        reach all brokers. `without_zookeeper`: brokers that do not reach the metadata service either; their sessions
        time out. A broker in no group reaches all.

        Raises: ValueError for brokers that the cluster does not have.
        """
        cut, without = tuple(frozenset(group) for group in groups), frozenset(without_zookeeper)
        unknown = without.union(*cut) - self._brokers.keys()
        if unknown:
            raise ValueError(f"{sorted(unknown)} are not brokers of the cluster, which has {sorted(self._brokers)}")
        self._groups, self._without_zookeeper = cut, without
        self._hold_links()
        self.zookeeper.cut(set(without))

    def heal(self) -> None:
        """End what `partition` has cut."""
        self.partition()

    def _hold_links(self) -> None:
        for broker in self._brokers.values():
            if broker.is_running:
                others = (self._brokers[other] for other in self._cut_off_from(broker.id))
                _hold_links(broker, tuple(port for other in others for port in other.ports))

    def _cut_off_from(self, broker_id: int) -> list[int]:
        """The brokers of other groups, also those that do not run: they may come back."""
        own = [group for group in self._groups if broker_id in group]
        if not own:
            return []
        others = frozenset().union(*self._groups) - own[0]
        return sorted(others & self._brokers.keys())

    # Waiting

    def wait_until_settled(self, timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """Wait until every running broker that the controller reaches knows just the running ones, and a controller
        among them, and has got all that the controller has sent. Brokers that are cut off from the metadata service
        stay known until their sessions time out.

        Raises: WaitTimedOut.
        """
        informed = self._informed(timeout_s) if self._with_zookeeper() else []
        for controller in set(self._wait_for_running(informed, timeout_s)):
            self._wait_for_delivery(controller, informed, timeout_s)
        self._wait_for_running(informed, timeout_s)  # older news that were under way may have come meanwhile

    def wait_for_brokers(self, brokers: Iterable[int], timeout_s: float = DEFAULT_TIMEOUT_S) -> None:
        """Wait until just these brokers are registered, and know that: others have gone or are cut off.

        Raises: WaitTimedOut.
        """
        expected = tuple(sorted(brokers))
        for broker_id in expected:
            self._wait(broker_id, timeout_s, f"the brokers {expected} and a controller", brokers=expected)

    def wait_for_controller(self, *, other_than: int, timeout_s: float = DEFAULT_TIMEOUT_S) -> int:
        """Wait until another broker is the controller; returns it. Raises: WaitTimedOut."""
        for broker_id in _others(self._informed(timeout_s, other_than=other_than), other_than):
            wanted = f"a controller other than {other_than}"
            view = self._wait(broker_id, timeout_s, wanted, not_controller=other_than)
        return cast("int", view.controller)

    def wait_for_leader(
        self,
        topic: str,
        partition: int = 0,
        *,
        leader: int | None = None,
        other_than: int | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> int:
        """Wait until a partition has this leader, or another one than `other_than`, or any; returns it.

        A broker that is cut off is not waited for. Raises: WaitTimedOut.
        """
        if leader is None and other_than is None:
            other_than = NO_LEADER
        wanted = f"a leader of {topic}-{partition} that is {'any' if leader is None else leader}"
        for broker_id in _others(self._informed(), other_than):
            view = self._wait(
                broker_id,
                timeout_s,
                wanted if other_than in (None, NO_LEADER) else f"{wanted} and not {other_than}",
                topic=topic,
                partition=partition,
                leader=leader,
                not_leader=other_than,
            )
        return cast("int", view.leader)

    def wait_for_in_sync_replicas(
        self, topic: str, partition: int = 0, *, replicas: Iterable[int], timeout_s: float = DEFAULT_TIMEOUT_S
    ) -> None:
        """Wait until just these replicas are in sync. Raises: WaitTimedOut."""
        expected = tuple(sorted(replicas))
        broker_id = self._informed()[0]
        wanted = f"the replicas {expected} of {topic}-{partition} in sync"
        self._wait(broker_id, timeout_s, wanted, topic=topic, partition=partition, in_sync=expected)

    def _with_zookeeper(self) -> list[int]:
        """The running brokers that reach the metadata service."""
        running = {broker.id for broker in self._brokers.values() if broker.is_running}
        return sorted(running - self._without_zookeeper)

    def _informed(self, timeout_s: float = DEFAULT_TIMEOUT_S, *, other_than: int | None = None) -> list[int]:
        """The running brokers that hear of changes: those that the controller reaches. Raises: WaitTimedOut.

        Brokers that the controller does not reach know an older one. Which it is, the metadata service knows.
        """
        candidates = self._with_zookeeper()
        if not candidates:
            raise BrokerStopped("No broker of the cluster runs and reaches the metadata service")
        if not any(set(self._cut_off_from(each)) & set(candidates) for each in candidates):
            return candidates  # whichever of them is the controller
        controller: int | None
        if self.zookeeper.is_running:
            controller = self.zookeeper.controller_among(set(candidates) - {other_than}, timeout_s)
        else:
            controller = self.controller
        if controller is None:
            other = "" if other_than is None else f" other than {other_than}"
            raise WaitTimedOut(f"none of the brokers {candidates} is a controller{other} after {timeout_s} s")
        return [each for each in candidates if controller not in self._cut_off_from(each)]

    def _wait_for_running(self, informed: list[int], timeout_s: float) -> list[int]:
        """Wait until these brokers know just the running ones. Returns the controller that each of them knows."""
        with_zookeeper, leaving = self._with_zookeeper(), tuple(sorted(self._without_zookeeper))
        known: dict[str, object] = {"brokers": tuple(with_zookeeper), "leaving": leaving}
        wanted = f"the brokers {with_zookeeper} and a controller"
        return [cast("int", self._wait(each, timeout_s, wanted, **known).controller) for each in informed]

    def _wait_for_delivery(self, controller: int, brokers: list[int], timeout_s: float) -> None:
        """Wait until these brokers have answered all requests of the controller, unless it is cut off or stopped."""
        if controller not in self._with_zookeeper():
            return
        others = tuple(each for each in brokers if each != controller)
        if not self._brokers[controller].ask("wait_for_delivery", brokers=others, timeout_s=timeout_s):
            raise WaitTimedOut(f"broker {controller}, the controller, waits for {others} after {timeout_s} s")

    def _wait(self, broker_id: int, timeout_s: float, wanted: str, **conditions: object) -> ClusterView:
        answer = self._brokers[broker_id].ask("wait_for_view", timeout_s=timeout_s, **conditions)
        is_so, view = cast("tuple[bool, ClusterView]", answer)
        if not is_so:
            raise WaitTimedOut(f"broker {broker_id} does not know {wanted} after {timeout_s} s; it knows {view}")
        return view

    def _ask_view(self, **partition: object) -> ClusterView:
        """The view of a broker that runs, hears of changes and has a controller."""
        broker = self._brokers[self._asked()]
        self._wait(broker.id, DEFAULT_TIMEOUT_S, "a controller")
        return cast("ClusterView", broker.ask("cluster_view", **partition))

    def _asked(self) -> int:
        if self._with_zookeeper() and self.zookeeper.is_running:
            return self._informed()[0]
        running = [broker.id for broker in self._brokers.values() if broker.is_running]
        if not running:
            raise BrokerStopped("No broker of the cluster runs")
        return min(running, key=lambda each: (len(self._cut_off_from(each)), each))  # of the largest side


def _others(brokers: list[int], broker_id: int | None) -> list[int]:
    """The brokers without one that may learn a change late or never; if there is no other, that one."""
    return [each for each in brokers if each != broker_id] or brokers


def _connect_to_all(broker: ClusterBroker) -> None:
    _hold_links(broker, ())


def _hold_links(broker: ClusterBroker, ports: tuple[int, ...]) -> None:
    with suppress(BrokerStopped):  # it has failed
        broker.ask("hold_links", ports=ports)


def _defaults(brokers: int) -> dict[str, SettingValue]:
    """Settings that fit a cluster of that size; internal topics are small, as those of `Broker`."""
    replicas = min(_REPLICAS_MAX, brokers)
    return {
        "offsets.topic.num.partitions": 1,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.num.partitions": 1,
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": min(_MIN_ISR, replicas),
        "zookeeper.session.timeout.ms": 6000,
        "controlled.shutdown.retry.backoff.ms": 100,
    }
