"""A broker for tests, as it is on its event loop: the server, its clock, and what the kit adds to it.

`reset` stops the server and starts another one on the same listening sockets, with an empty metadata tree and empty log
directories. So nothing of the earlier server can be left, whatever it was.
"""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Final

from odradek.broker.config.broker_config import BrokerConfig
from odradek.broker.machine.machine import Machine
from odradek.broker.metadata.metadata_tree_setup import open_metadata_tree
from odradek.broker.network.sockets.host_addresses import LOOPBACK
from odradek.broker.server import KafkaServer
from odradek.controller.model.broker_info import format_address
from odradek.controller.tree.private_file import IN_MEMORY
from odradek.testing.errors import BrokerStopped
from odradek.testing.node.files.data_directory import DataDirectory
from odradek.testing.node.files.fallible_files import FallibleFiles
from odradek.testing.node.running.activity import Activity, CountedIoPool, CountedTree, CountedWorkers
from odradek.testing.node.running.advance import advance
from odradek.testing.node.running.held_links import HeldLinks
from odradek.testing.node.running.kept_ports import KeptPorts
from odradek.testing.observations.observations import Observations
from odradek.testing.observations.waits import Change
from odradek.timer.clock import AdjustableClock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from odradek.broker.apis.services import Services
    from odradek.controller.tree.metadata_tree import MetadataTree
    from odradek.timer.clock import Clock


_DATA_KEYS: Final = frozenset({"log.dirs", "log.dir"})


class RunningBroker:
    """All methods run on the event loop of the broker."""

    def __init__(
        self,
        settings: Mapping[str, str],
        loop: asyncio.AbstractEventLoop,
        on_failure: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        """`on_failure` is called when the broker cannot go on and must be stopped."""
        self._on_failure = on_failure
        self._settings = dict(settings)
        self._loop = loop
        self._ports = KeptPorts()
        self._directory: DataDirectory | None = None
        self._servers = 0
        """How many servers there have been."""
        self._server: KafkaServer | None = None
        self._observations: Observations | None = None
        self._why_none = "The broker has not started"
        self._changing = asyncio.Lock()
        """Resets and advances come one after the other."""
        self.clock = AdjustableClock()
        self.activity = Activity()
        self.files = FallibleFiles()
        self.links = HeldLinks(self._exchange_ended)
        """The links to other brokers, which a test can hold."""

    @property
    def server(self) -> KafkaServer:
        assert self._server is not None, "the broker has not started"
        return self._server

    @property
    def services(self) -> Services:
        return self.server.services

    @property
    def observations(self) -> Observations:
        """What was observed since the start or the last reset. Raises: BrokerStopped during a reset or a stop."""
        if self._observations is None:
            raise BrokerStopped(self._why_none)
        return self._observations

    @property
    def addresses(self) -> dict[str, str]:
        """`host:port` of each listener, for its clients, by its name, in the order of the configuration."""
        return {each.listener_name: format_address(each.host or LOOPBACK, each.port) for each in self.server.addresses}

    @property
    def _is_kept(self) -> bool:
        """Whether the settings name a place for the data: it stays there."""
        return not self._settings.keys().isdisjoint({*_DATA_KEYS, "zookeeper.connect"})

    def _exchange_ended(self) -> None:
        if self._observations is not None:
            self._observations.waits.announce(Change.EXCHANGES)

    async def start(self) -> None:
        """Start the broker. Raises: StartupError, ConfigError or OSError; nothing is left then."""
        try:
            if self._settings.keys().isdisjoint(_DATA_KEYS):
                self._directory = DataDirectory()
            self._server = await self._start_server()
        except BaseException:
            self._close()
            raise

    async def stop(self) -> None:
        """Stop the broker and remove its data."""
        async with self._changing:
            server, self._server = self._server, None
            self._end_observations("The broker was stopped before it answered")
            try:
                if server is not None:
                    await server.stop()
            finally:
                self._close()

    async def reset(self) -> None:
        """Replace the broker by a fresh one on the same ports. The connections of clients are closed.

        Raises: RuntimeError if the settings name a place for the data.
        """
        if self._is_kept:
            raise RuntimeError("a broker with log.dirs or zookeeper.connect keeps its data, and cannot be reset")
        resetting = asyncio.ensure_future(self._reset())
        # Half a reset is no broker, so it goes on when who waits for it is cancelled; `stop` waits for its end.
        await asyncio.shield(resetting)

    async def advance(self, ms: int) -> None:
        """Let time pass; see `advance.py`. Raises: ValueError."""
        async with self._changing:
            await advance(self.clock, self.server.timer, self.activity, ms)
            self.server.clock_moved()

    async def _reset(self) -> None:
        async with self._changing:
            self._end_observations("The broker was reset before it answered")
            try:
                await self.server.stop()
                if self._directory is not None:
                    self._directory.clear()
                self.clock = AdjustableClock()
                self._server = await self._start_server()
            except Exception as error:
                self._on_failure(error)
                raise

    async def _start_server(self) -> KafkaServer:
        self._servers += 1
        settings = dict(self._settings)
        if self._directory is not None:
            settings["log.dirs"] = os.path.join(self._directory.path, f"data-{self._servers}")
        config = BrokerConfig(settings)
        self.activity = activity = Activity()
        self.files = FallibleFiles()
        server = KafkaServer(
            config,
            clock=self.clock,
            open_tree=self._open_tree,
            wrap_links=self.links.wrap,
            listen=self._ports.open,
            machine=Machine(
                io_pool=CountedIoPool(self._loop, activity),
                workers=CountedWorkers(self._loop, activity),
                fs=self.files,
            ),
        )
        server.failed.add_done_callback(lambda failed: self._server_failed(server, failed))
        await server.start()
        self._observations = Observations(server.services)
        return server

    def _server_failed(self, server: KafkaServer, failed: asyncio.Future[None]) -> None:
        error = None if failed.cancelled() else failed.exception()
        if error is not None and server is self._server:  # not one that a reset has replaced
            self._on_failure(error)

    def _end_observations(self, reason: str) -> None:
        observations, self._observations = self._observations, None
        self._why_none = reason
        if observations is not None:
            observations.close(reason)

    async def _open_tree(
        self, config: BrokerConfig, clock: Clock, on_failure: Callable[[BaseException], None]
    ) -> MetadataTree:
        if self._is_kept:
            return await open_metadata_tree(config, clock, on_failure)
        tree = await CountedTree.open(IN_MEMORY, clock, on_failure)
        tree.activity = self.activity
        return tree

    def _close(self) -> None:
        self._ports.close()
        if self._directory is not None:
            self._directory.remove()
            self._directory = None
