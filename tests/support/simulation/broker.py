"""A broker of a simulated cluster: a whole KafkaServer per life, its files, and what can be done to it.

A life is one process: `start` begins one, `crash` ends it as kill -9 does (its files stay as they are), `lose_power`
too, but only synced data is sure to stay, and `stop` ends it as SIGTERM does. A life ends by itself when the broker
refuses to start or cannot continue, as a process would exit.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Final, cast

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.config.endpoint import EndPoint as ListenerEndPoint
from odradek.broker.inter_broker.broker_connection import BrokerConnection, LinkSettings
from odradek.broker.machine.machine import Machine
from odradek.broker.machine.startup_error import StartupError
from odradek.broker.network.frames.frame_buffers import FrameBuffers
from odradek.broker.server import KafkaServer
from odradek.controller.model.broker_info import EndPoint, SecurityProtocol
from odradek.storage.disk.file_system import OsFileSystem
from tests.support.disks.simulated_disk import SimulatedDisk
from tests.support.simulation.environment.inline_pools import DelayedIoPool, DelayedWorkerPool
from tests.support.simulation.environment.tree_server import TreeClient, TreeServer
from tests.support.simulation.environment.virtual_loop import VirtualClock

if TYPE_CHECKING:
    from odradek.broker.apis.services import Services
    from odradek.broker.network.frames.answer_receiver import AnswerReceiver
    from odradek.timer.system_timer import SystemTimer
    from tests.support.simulation.environment import virtual_loop
    from tests.support.simulation.environment.network import Network

PORT: Final = 9092
SESSION_TIMEOUT_MS: Final = 4_000
REQUEST_TIMEOUT_MS: Final = 3_000

SETTINGS: Final = {
    "zookeeper.connect": "zookeeper:2181",
    "zookeeper.session.timeout.ms": str(SESSION_TIMEOUT_MS),
    "min.insync.replicas": "2",
    "default.replication.factor": "3",
    "num.partitions": "2",
    "log.segment.bytes": "2048",
    "log.flush.offset.checkpoint.interval.ms": "5000",
    "replica.high.watermark.checkpoint.interval.ms": "2000",
    "replica.lag.time.max.ms": "3000",
    "replica.socket.timeout.ms": str(REQUEST_TIMEOUT_MS),
    "controller.socket.timeout.ms": str(REQUEST_TIMEOUT_MS),
    "request.timeout.ms": str(REQUEST_TIMEOUT_MS),
    "controlled.shutdown.retry.backoff.ms": "500",
    "transaction.state.log.num.partitions": "2",
    "transaction.state.log.min.isr": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
    "leader.imbalance.check.interval.seconds": "10",
    "log.cleaner.enable": "false",
    "odradek.event.loop.pause.ms": "0",
}


def end_point(broker_id: int) -> EndPoint:
    return EndPoint(f"broker{broker_id}", PORT, "PLAINTEXT", SecurityProtocol.PLAINTEXT)


def make_link(
    network: Network, source: virtual_loop.Machine, timer: SystemTimer, target: EndPoint, client_id: str
) -> BrokerConnection:
    """The broker's own link, over the simulated network."""

    async def connect(point: EndPoint, make_receiver: Callable[[], AnswerReceiver]) -> AnswerReceiver:
        return cast("AnswerReceiver", await network.connect(source, point))

    settings = LinkSettings(
        connect=connect,
        timer=timer,
        max_frame_bytes=2**31 - 1,
        connection_setup_timeout_ms=2_000,
        connection_setup_timeout_max_ms=4_000,
        buffers=FrameBuffers(),
    )
    return BrokerConnection(target, client_id=client_id, settings=settings)


class Life:
    """One process."""

    def __init__(self, broker: SimulatedBroker, number: int) -> None:
        self.machine = broker.network.loop.add_machine(broker.name)
        self.number = number
        self.server: KafkaServer | None = None
        self.tree: TreeClient | None = None
        self.is_serving = False

    @property
    def services(self) -> Services | None:
        return None if self.server is None else self.server._services


class SimulatedBroker:
    """`note` writes into the trace."""

    def __init__(
        self,
        broker_id: int,
        directory: Path,
        network: Network,
        tree: TreeServer,
        note: Callable[[str], None],
        settings: Mapping[str, str],
    ) -> None:
        self.id = broker_id
        self.name = f"broker{broker_id}"
        self.network = network
        self.life: Life | None = None
        self.lives = 0
        self._ended: list[Life] = []
        """Kept in memory for the same reason as the callbacks of a killed machine: see `VirtualLoop.kill`."""
        self.restart_not_before_us = 0
        self._rng = Random(network.rng.random())
        self._directory = directory
        self._disk: SimulatedDisk | None = None
        self._settings = settings
        self._tree = tree
        self._note = note

    # Actions on it

    def start(self) -> None:
        assert self.life is None
        self.lives += 1
        self.life = life = Life(self, self.lives)
        self._note(f"{self.name} starts, life {life.number}")
        self.network.loop.start(self._live(life), life.machine.context.copy())

    def crash(self) -> None:
        life = self.life
        if life is None:
            return
        self._note(f"{self.name} crashes")
        self._end(life)
        if life.server is not None:
            _let_go_of_files(life.server)

    def keep_synced(self) -> None:
        """From its next start on, note what is synced: expensive, and needed for `lose_power`."""
        self._disk = SimulatedDisk(self._directory)

    def lose_power(self) -> None:
        assert self._disk is not None
        left = self._directory.with_name("left")
        self._disk.cut_power(self._rng, left)
        self.crash()
        shutil.rmtree(self._directory)
        left.rename(self._directory)
        self._disk = SimulatedDisk(self._directory)

    def stop(self) -> None:
        """SIGTERM: it ends after its clean stop."""
        life = self.life
        if life is not None and life.is_serving:
            self._note(f"{self.name} is to stop")
            life.is_serving = False
            self.network.loop.start(self._stop(life), life.machine.context.copy())

    def pause(self) -> None:
        if self.life is not None and not self.life.machine.is_paused:
            self._note(f"{self.name} is paused")
            self.life.machine.is_paused = True
            if self.life.tree is not None:
                self.life.tree.stall()

    def resume(self) -> None:
        if self.life is not None and self.life.machine.is_paused:
            self._note(f"{self.name} goes on")
            self.life.machine.is_paused = False
            if self.life.tree is not None:
                self.life.tree.recover()

    @property
    def is_serving(self) -> bool:
        return self.life is not None and self.life.is_serving

    @property
    def services(self) -> Services | None:
        """The services of the running broker; None while there is none."""
        return None if self.life is None else self.life.services

    # Underneath

    async def _live(self, life: Life) -> None:
        loop = self.network.loop
        config = BrokerConfig(
            {
                **SETTINGS,
                **self._settings,
                "broker.id": str(self.id),
                "listeners": f"PLAINTEXT://{self.name}:{PORT}",
                "log.dirs": str(self._directory),
            }
        )
        server = life.server = KafkaServer(
            config,
            clock=VirtualClock(loop),
            make_sockets=lambda config, clock, timer, io_pool, dispatch: _Sockets(self, life, dispatch),
            open_tree=lambda config, clock, on_failure: self._open_tree(life),
            make_link=lambda point, /, *, client_id: make_link(
                self.network, life.machine, server.timer, point, client_id
            ),
            machine=Machine(
                io_pool=DelayedIoPool(loop, self._rng),
                workers=DelayedWorkerPool(loop, self._rng),
                rng=self._rng,
                fs=self._disk or OsFileSystem(),
            ),
        )
        try:
            await server.start()
            self._note(f"{self.name} serves")
            life.is_serving = True
            await server.failed
        except (StartupError, OSError) as error:
            self._note(f"{self.name} ends: {error}")
            if life.is_serving:
                await server.stop()
            self._end(life)

    async def _stop(self, life: Life) -> None:
        assert life.server is not None
        await life.server.stop()
        self._note(f"{self.name} has stopped")
        self._end(life)

    def _end(self, life: Life) -> None:
        life.is_serving = False
        self.network.close(life.machine)
        self.network.loop.kill(life.machine)
        if life.tree is not None:
            life.tree.cut_off()
        self._ended.append(life)
        self.life = None

    async def _open_tree(self, life: Life) -> TreeClient:
        life.tree = client = TreeClient(self._tree, life.machine, SESSION_TIMEOUT_MS)
        if self.network.is_cut((self.name, "zookeeper")) or self.network.is_cut(("zookeeper", self.name)):
            client.cut_off()
        return await client.connect()


class _Sockets:
    """Implements server.Sockets."""

    def __init__(self, broker: SimulatedBroker, life: Life, dispatch: object) -> None:
        self._broker = broker
        self._life = life
        self._dispatch = dispatch
        self.end_points = (ListenerEndPoint(broker.name, PORT, "PLAINTEXT", SecurityProtocol.PLAINTEXT),)

    async def open(self) -> tuple[ListenerEndPoint, ...]:
        return self.end_points

    def start_accepting(self) -> None:
        self._broker.network.listen((self._broker.name, PORT), self._life.machine, self._dispatch)

    def stop_accepting(self) -> None: ...

    async def update_listeners(self) -> None: ...

    def limits_changed(self) -> None: ...

    def update_ip_connection_rate_quota(self, ip: str | None, rate: float | None) -> None: ...

    async def close(self) -> None:
        self._broker.network.close(self._life.machine)


def _let_go_of_files(server: KafkaServer) -> None:
    """Close the files and drop the locks of a dead process, as the kernel does. Their content stays."""
    manager = server._log_manager
    open_files = manager.environment.open_files
    for entry in list(open_files._entries):
        entry.evict()
    for log_dir in manager.live_log_dirs:
        log_dir.unlock()
